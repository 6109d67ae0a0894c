"The changes of qlae's appendix C.4, each against the sentence that lists it, on small networks."

from types import SimpleNamespace

import pytest
import torch

from disentangle_repro.core.device import make_generator, seeded
from disentangle_repro.models import create_model
from disentangle_repro.qlae.latent_quantization import QLAE
from disentangle_repro.qlae.negative_results import VariedQLAE
from disentangle_repro.train.loop import CudaGraphStep, Training
from disentangle_repro.train.optimizer import make_optimizer

BASES = ("qlae", "qlinfowgan_gp")
IMAGES = torch.randint(256, (4, 64, 64, 3), dtype=torch.uint8, generator=make_generator(0))


def made(name, **own):
    return create_model(name, dataset="shapes3d", width=0.1, **own)


def first_loss(model, done=1.0):
    model.anneal(done)
    return model.steps()[0].loss(IMAGES, make_generator(1))


def training_of(name, total, decay=0.1):
    model = made(name)
    settings = {"learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.99, "weight_decay": decay}
    training = Training(model, make_optimizer(model, **settings), IMAGES, batch_size=4, seed=0)
    training.total = total
    return training


def updated(training):
    training.prepare()
    training.update()
    return [parameter.detach().clone() for parameter in training.model.parameters()]


def test_without_a_change_nothing_changes():
    for build in (QLAE, VariedQLAE):
        with seeded(0):
            loss, _ = first_loss(build(6, width=0.1))
        if build is QLAE:
            expected = loss
    assert loss.equal(expected)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(
    ("change", "done", "quantize", "commit"),
    [
        ("vqvae_weights", 0.3, 1.0, 0.25),
        ("late_decay", 0.3, 0.01, 0.01),
        ("annealed_quantize", 0.3, 0.003, 0.01),
        ("annealed_commit", 0.3, 0.01, 0.003),
        ("annealed_both", 0.3, 0.003, 0.003),
        ("annealed_both", 0.0, 0.0, 0.0),
        ("annealed_both", 1.0, 0.01, 0.01),
    ],
)
def test_codebook_losses_have_the_weights_of_the_list(base, change, done, quantize, commit):
    loss, terms = first_loss(made(f"{base}_{change}"), done)
    weights = {"reconstruction": 1, "critic_value": 1, "gradient_penalty": 10, "latents": 200}  # table 10
    expected = sum((weights | {"quantize": quantize, "commit": commit})[name] * term for name, term in terms.items())
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("base", BASES)
def test_the_l1_norm_pulls_every_weight_alike_and_no_codebook(base):
    assert made(f"{base}_l1").l1 == 1e-6
    plain, changed = made(base), made(f"{base}_l1", l1=0.5)  # large against the rounding of gradients
    gradients = []
    for model in (plain, changed):
        loss, _ = first_loss(model)
        names, parameters = zip(*model.named_parameters(), strict=True)
        gradients.append(torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True))
    for name, parameter, before, after in zip(names, parameters, *gradients, strict=True):
        pull = torch.zeros(()) if name == "latent.codebooks" else 0.5 * parameter.sign()
        torch.testing.assert_close(after - before, pull.expand_as(parameter), rtol=0, atol=1e-3, msg=name)


def test_weights_decay_in_the_second_half_only():
    late, never, always = (training_of(*given) for given in (("qlae_late_decay", 4), ("qlae", 4, 0.0), ("qlae", 4)))
    for update in range(4):
        states = [updated(training) for training in (late, never, always)]
        same = [all(a.equal(b) for a, b in zip(states[0], other, strict=True)) for other in states[1:]]
        assert same == [update < 2, False], f"update {update}"
        assert [group["weight_decay"] for group in late.optimizer.param_groups] == [0.1 * (update >= 2), 0.0]


@pytest.mark.parametrize(("name", "moving"), [("qlinfowgan_gp", [5]), (f"{BASES[1]}_codebooks_with_encoder", range(5))])
def test_codebooks_move_with_the_encoder(name, moving):
    training, moved = training_of(name, 6), []
    for update in range(6):
        before = training.model.latent.codebooks.detach().clone()
        updated(training)
        if not training.model.latent.codebooks.equal(before):
            moved.append(update)
    assert moved == list(moving)


def test_a_record_is_made_anew_where_the_weight_decay_changes(monkeypatch):
    training, done = training_of("qlae_late_decay", 16), []

    def record(step):
        done.append(("recorded", training.optimizer.param_groups[0]["weight_decay"]))
        return SimpleNamespace(replay=lambda: done.append("replayed")), {}

    monkeypatch.setattr(CudaGraphStep, "_aside", lambda step: training.update() and done.append("called"))
    monkeypatch.setattr(CudaGraphStep, "_record", record)
    step = CudaGraphStep(training)
    step.on_cuda = True
    for _ in range(16):
        step()
    half = [*["called"] * 3, "recorded", *["replayed"] * 5]
    assert done == [item if item != "recorded" else (item, decay) for decay in (0.0, 0.1) for item in half]
