"The models that qlae compares with: losses are finite, every part learns, noise comes from the stream that is given."

import pytest
import torch

from disentangle_repro.baselines.variational import GaussianLatent, TotalCorrelationLatent
from disentangle_repro.baselines.vqvae import VectorQuantizer, vqvae
from disentangle_repro.core.device import make_generator
from disentangle_repro.qlae.latent_quantization import LatentQuantizer
from disentangle_repro.train.optimizer import make_optimizer


@pytest.mark.parametrize("layer", [GaussianLatent, TotalCorrelationLatent])
def test_dice_follow_the_type_of_what_is_said(layer):
    encoded = torch.randn(4, 6, dtype=torch.float64)
    latents, penalties = layer()(encoded, make_generator(0))
    assert latents.dtype == torch.float64 and all(term.dtype == torch.float64 for term in penalties.values())


@pytest.mark.parametrize("layer", [GaussianLatent, TotalCorrelationLatent])
@pytest.mark.parametrize("raw", [-40.0, -5.0, 0.0, 5.0, 80.0])
def test_narrow_and_wide_posteriors_stay_finite(layer, raw):
    means = torch.randn(8, 3, generator=make_generator(0))
    encoded = torch.cat([means, torch.full((8, 3), raw)], dim=1).requires_grad_()
    total = sum(layer()(encoded, make_generator(0)).penalties.values())
    (gradient,) = torch.autograd.grad(total, encoded)
    assert torch.isfinite(total) and torch.isfinite(gradient).all()


def test_one_number_a_vector_is_qlaes_global_codebook():
    encoded = torch.randn(200, 4, generator=make_generator(0))
    shared, vectors = LatentQuantizer(4, 10, shared=True), VectorQuantizer(dim=1, n_values=10)
    with torch.no_grad():
        vectors.codebooks.copy_(shared.codebooks.T)
    (decoder_input, terms), (code, penalties) = vectors(encoded), shared(encoded)
    assert decoder_input.equal(code)
    for name in terms:
        torch.testing.assert_close(terms[name], penalties[name])


def test_the_vectors_are_spared_the_weight_decay():
    model = vqvae(3, width=0.1)
    groups = make_optimizer(model, learning_rate=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1).param_groups
    (spared,) = [group for group in groups if group["weight_decay"] == 0]
    assert [p is model.latent.codebooks for p in spared["params"]] == [True]
