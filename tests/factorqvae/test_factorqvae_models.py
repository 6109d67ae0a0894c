"The models of factorqvae with their own networks: codes, reconstructions, and a temperature that falls."

import pytest
import torch

from disentangle_repro.core.device import make_generator
from disentangle_repro.factorqvae.settings import DATASETS, SETTINGS
from disentangle_repro.models import create_model
from disentangle_repro.train import Training, make_optimizer
from disentangle_repro.train.loop import CudaGraphStep


def made(name, dataset="shapes3d", protocol="paper", width=0.1):
    own = SETTINGS[name].hyperparameters(dataset, protocol)["model"]
    return create_model(name, dataset=dataset, protocol=protocol, width=width, **own)


@pytest.fixture(scope="module")
def images():
    return torch.randint(256, (4, 64, 64, 3), dtype=torch.uint8, generator=make_generator(0))


@pytest.mark.parametrize("name", SETTINGS)
def test_codes_and_images_have_their_shapes(name, images):
    with torch.no_grad():
        model = made(name)
        latents = model.encode(images)
        reconstructions = model.decode(latents)
    assert latents.shape == (4, 12) and reconstructions.shape == images.shape
    assert 0 <= reconstructions.min() and reconstructions.max() <= 1


@pytest.mark.parametrize("dataset", DATASETS)
def test_latents_are_twice_the_sources(dataset, images):
    sources = {"shapes3d": 6, "isaac3d": 9, "mpi3d": 7}[dataset]
    with torch.no_grad():
        assert made("factorqvae", dataset).encode(images).shape[1] == 2 * sources


def test_the_temperature_falls_as_the_training_goes_on(images):
    model = made("factorqvae")
    optimizer = make_optimizer(model, learning_rate=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.0)
    training = Training(model, optimizer, images, batch_size=2, seed=0)
    training.total, step, seen = 8, CudaGraphStep(training), []
    for _ in range(8):
        step()
        seen.append(model.latent.temperature.item())
    assert seen[0] == 1 and seen == sorted(seen, reverse=True)
    assert seen[::2] == seen[1::2], "both steps of a round share a temperature"
    assert abs(seen[-1] - 2.718281828 ** -0.75) < 1e-6
