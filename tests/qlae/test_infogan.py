"Both InfoGANs in training: who moves in which step, and a run that is broken off in the middle of a round."

import pytest
import torch

from disentangle_repro.baselines.infogan import InfoGAN, UniformLatent, infogan
from disentangle_repro.core.device import make_generator, seeded
from disentangle_repro.qlae.latent_quantization import LatentQuantizer
from disentangle_repro.qlae.quantized_infogan import ql_infogan
from disentangle_repro.train import Training, fit, make_optimizer

PICTURES = torch.randint(256, (32, 64, 64, 3), dtype=torch.uint8, generator=make_generator(0))
both = pytest.mark.parametrize("new_model", [infogan, ql_infogan])
protocols = pytest.mark.parametrize("protocol", ["paper", "code"])


def new_training(new_model, critic_steps=2, protocol="paper", **settings):
    with seeded(0):
        model = new_model(4, width=0.1, critic_steps=critic_steps, protocol=protocol)
    settings = {"learning_rate": 2e-4, "beta1": 0.0, "beta2": 0.9, "weight_decay": 0.01, **settings}
    return Training(model, make_optimizer(model, **settings), PICTURES, batch_size=4, seed=0)


@protocols
@both
def test_a_step_moves_its_parameters_and_no_others(new_model, protocol):
    training = new_training(new_model, protocol=protocol)
    model = training.model
    own = [{"encoder", "critic"}, {"encoder", "critic"}, {"decoder", "latent"}]
    for parts in own:
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        terms = training.update()
        assert all(term.isfinite() for term in terms.values())
        moved = {name for name, p in model.named_parameters() if not p.equal(before[name])}
        last_bias = {"critic.head.4.bias", "critic.3.bias"}  # cancels in the difference of values
        expected = {name for name in before if name.split(".")[0] in parts}
        assert moved | last_bias >= expected and moved <= expected
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    assert training.step is training.steps[0]


@both
def test_a_run_broken_off_within_a_round_ends_as_an_undisturbed_one(new_model, tmp_path):
    undisturbed = new_training(new_model)
    curve = fit(undisturbed, 8, log_every=2, progress=False)
    how = {"checkpoint": tmp_path / "checkpoint.pt", "log_every": 2, "progress": False}
    fit(new_training(new_model), 4, **how)
    resumed = new_training(new_model)
    assert fit(resumed, 8, **how) == curve
    for ours, theirs in zip(undisturbed.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@both
def test_codes_have_the_shapes_of_any_autoencoder(new_model):
    model = new_model(4, width=0.1)
    latents = model.encode(PICTURES[:3])
    assert latents.shape == (3, 4) and model.decode(latents).shape == (3, 64, 64, 3)
    assert model.discrete == (new_model is ql_infogan)
    with pytest.raises(NotImplementedError, match="no single loss: train by steps()"):
        model.loss(PICTURES[:3])


def test_the_codes_critic_looks_through_the_encoders_eyes():
    for new_model in (infogan, ql_infogan):
        model = new_model(4, width=0.1, protocol="code")
        step = model.steps()[0]
        assert len(step.parameters) == len(set(step.parameters)) == len(list(model.encoder.parameters())) + 2
        assert model.critic(torch.rand(2, 3, 64, 64)).shape == (2, 1)


def test_a_critic_that_never_moves_is_refused():
    with pytest.raises(ValueError, match="critic_steps is 0 but the critic needs at least 1"):
        infogan(4, width=0.1, critic_steps=0)


@pytest.mark.parametrize("latent", [UniformLatent(3), LatentQuantizer(3)])
def test_everything_random_comes_from_the_stream_that_is_given(latent):
    with seeded(0):
        dense = [torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, n)) for n in (3, 1)]
        decoder = torch.nn.Sequential(torch.nn.Linear(3, 12), torch.nn.Unflatten(1, (3, 2, 2)))
    model = InfoGAN(dense[0], decoder, dense[1], latent, {"quantize": 0.01, "commit": 0.01})
    images = PICTURES[:8, :2, :2]
    for step in model.steps()[-2:]:
        losses = []
        for seed in (0, 0, 1):
            state = torch.get_rng_state()
            losses.append(step.loss(images, make_generator(seed))[0])
            assert torch.get_rng_state().equal(state), "the global stream was drawn from"
        assert losses[0] == losses[1] != losses[2]
