"Both InfoGANs in training: a run that is interrupted in the middle of a round, and draws from the given generator."

import pytest
import torch

from disentangle_repro.baselines.infogan import InfoGAN, UniformLatent, infogan
from disentangle_repro.core.device import make_generator, seeded
from disentangle_repro.qlae.latent_quantization import LatentQuantizer
from disentangle_repro.qlae.quantized_infogan import ql_infogan
from disentangle_repro.train import Training, fit, make_optimizer

IMAGES = torch.randint(256, (32, 64, 64, 3), dtype=torch.uint8, generator=make_generator(0))


def new_training(new_model):
    with seeded(0):
        model = new_model(4, width=0.1, critic_steps=2)
    settings = {"learning_rate": 2e-4, "beta1": 0.0, "beta2": 0.9, "weight_decay": 0.01}
    return Training(model, make_optimizer(model, **settings), IMAGES, batch_size=4, seed=0)


@pytest.mark.parametrize("new_model", [infogan, ql_infogan])
def test_a_run_broken_off_within_a_round_ends_as_an_undisturbed_one(new_model, tmp_path):
    undisturbed = new_training(new_model)
    curve = fit(undisturbed, 8, log_every=2, progress=False)
    options = {"checkpoint": tmp_path / "checkpoint.pt", "log_every": 2, "progress": False}
    fit(new_training(new_model), 4, **options)
    resumed = new_training(new_model)
    assert fit(resumed, 8, **options) == curve
    for ours, theirs in zip(undisturbed.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_it_has_no_single_loss():
    with pytest.raises(NotImplementedError, match="no single loss: train by steps()"):
        infogan(4, width=0.1).loss(IMAGES[:3])


def test_a_critic_that_never_moves_is_refused():
    with pytest.raises(ValueError, match="critic_steps is 0 but the critic needs at least 1"):
        infogan(4, width=0.1, critic_steps=0)


@pytest.mark.parametrize("latent", [UniformLatent(3), LatentQuantizer(3)])
def test_everything_random_comes_from_the_stream_that_is_given(latent):
    with seeded(0):
        dense = [torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, n)) for n in (3, 1)]
        decoder = torch.nn.Sequential(torch.nn.Linear(3, 12), torch.nn.Unflatten(1, (3, 2, 2)))
    model = InfoGAN(dense[0], decoder, dense[1], latent, {"quantize": 0.01, "commit": 0.01})
    images = IMAGES[:8, :2, :2]
    for step in model.steps()[-2:]:
        losses = []
        for seed in (0, 0, 1):
            state = torch.get_rng_state()
            losses.append(step.loss(images, make_generator(seed))[0])
            assert torch.get_rng_state().equal(state), "the global stream was drawn from"
        assert losses[0] == losses[1] != losses[2]
