"Networks of tripod's models: residual under both protocols, smooth enough for the finite difference of equation 9."

import pytest
import torch

from disentangle_repro.core.device import make_generator
from disentangle_repro.models import create_model
from disentangle_repro.nets.residual import ResidualDecoder, ResidualEncoder
from disentangle_repro.nets.style import StyleDecoder
from disentangle_repro.tripod.settings import DATASETS, SETTINGS, TRIPOD


def second_differences(decoder, latents, steps, epsilon):
    "Equation 9 for each regularised layer."
    maps = []
    for sign in (1, 0, -1):
        *whole, before = decoder.activations(latents + sign * epsilon * steps)
        maps.append([*whole, decoder.doubled(before)])
    return [(plus - 2 * middle + minus) / epsilon**2 for plus, middle, minus in zip(*maps, strict=True)]


def agreement(decoder):
    "Correlations of equation 9 at epsilon 0.1 with its limit, taken at 1e-5 in double precision."
    decoder, n_latents = decoder.double().requires_grad_(False), 12
    latents = 2 * torch.rand(4, n_latents, generator=make_generator(0), dtype=torch.float64) - 1
    steps = 3**-0.5 * torch.randn(4, n_latents, generator=make_generator(1), dtype=torch.float64).sign()
    both = (second_differences(decoder, latents, steps, epsilon) for epsilon in (0.1, 1e-5))
    return [torch.corrcoef(torch.stack([x.flatten() for x in pair]))[0, 1].item() for pair in zip(*both, strict=True)]


@pytest.mark.parametrize("protocol", ["paper", "code"])
@pytest.mark.parametrize("settings", ["left out", "of a run"])
def test_the_finite_difference_is_a_second_derivative_on_tripods_decoder(protocol, settings):
    own = TRIPOD.hyperparameters("shapes3d", protocol)["model"] if settings == "of a run" else {}
    model = create_model("tripod", dataset="shapes3d", protocol=protocol, width=0.125, **own)
    correlations = agreement(model.decoder)
    assert min(correlations) > 0.95, f"correlations with the limit {correlations}"


def test_on_leaky_rectifiers_it_is_none():
    torch.manual_seed(0)
    assert max(agreement(StyleDecoder(12, width=0.125))) < 0.3


@pytest.mark.parametrize("protocol", ["paper", "code"])
@pytest.mark.parametrize("name", SETTINGS)
def test_every_model_of_the_tables_has_residual_networks(name, protocol):
    for dataset in DATASETS:
        own = SETTINGS[name].hyperparameters(dataset, protocol)["model"]
        model = create_model(name, dataset=dataset, protocol=protocol, width=0.03, **own)
        assert isinstance(model.encoder, ResidualEncoder) and isinstance(model.decoder, ResidualDecoder)
