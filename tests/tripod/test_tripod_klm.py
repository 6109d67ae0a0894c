"Kernel multi-information as others call it: blind to scale, finite for silent latents, strict about its arguments."

import math
import warnings

import pytest
import torch

from disentangle_repro.core.device import make_generator
from disentangle_repro.tripod.finite_scalar_quantization import FiniteScalarQuantizer
from disentangle_repro.tripod.kernel_multiinformation import kernel_multiinformation, latent_scales, silverman

KINDS = ("raw", "quantised", "quantised, scales of the continuous")


def batch(kind, seed, dependent=False):
    "Latents of 64 samples, and the scales they come with."
    encoded = torch.randn(64, 12, generator=make_generator(seed))
    if dependent:
        encoded = encoded[:, :2].repeat(1, 6) + 0.2 * encoded
    if kind == "raw":
        return encoded, None
    quantizer = FiniteScalarQuantizer(12)
    return quantizer.code(encoded), None if kind == "quantised" else latent_scales(quantizer.bounded(encoded))


def penalty_and_gradient(latents, scales=None):
    latents = latents.clone().requires_grad_()
    nats = kernel_multiinformation(latents, scales)
    return nats.item(), torch.autograd.grad(nats, latents)[0]


@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10))
def test_rescaling_changes_it_by_less_than_1e_5(kind, seed, dependent):
    latents, scales = batch(kind, seed, dependent)
    before = kernel_multiinformation(latents, scales)
    assert before.dtype == torch.float32
    factors = 10 ** (8 * torch.rand(12, generator=make_generator(seed)) - 4)
    for signs in (1, -1):
        after = kernel_multiinformation(signs * factors * latents, None if scales is None else factors * scales)
        assert abs(after - before) < 1e-5
    for factors in (1e-6, 1e6, torch.ones(12).index_fill(0, torch.tensor(seed), 3e3)):
        after = kernel_multiinformation(factors * latents, None if scales is None else factors * scales)
        assert abs(after - before) < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_moving_all_samples_alike_changes_little(kind):
    latents, scales = batch(kind, 0)
    assert abs(kernel_multiinformation(latents + 1, scales) - kernel_multiinformation(latents, scales)) < 1e-5


def test_fixed_smoothing_is_not_blind_to_scale():
    latents, _ = batch("raw", 0)
    fixed = torch.full((12,), 0.5)
    assert abs(kernel_multiinformation(2 * latents, fixed) - kernel_multiinformation(latents, fixed)) > 1


@pytest.mark.parametrize("protocol", ["paper", "code"])
def test_a_silent_latent_costs_its_share_of_silvermans_bandwidth(protocol):
    latents, _ = batch("raw", 0)
    still = -silverman(torch.ones(12), 64).log().sum()
    torch.testing.assert_close(kernel_multiinformation(0 * latents + 0.3, protocol=protocol), still)


@pytest.mark.parametrize("level", [0.0, 0.3, -1.0])
@pytest.mark.parametrize("silent", [1, 6, 12])
def test_silent_latents_leave_value_and_gradient_finite(silent, level):
    latents, _ = batch("raw", 0)
    latents[:, :silent] = level
    nats, gradient = penalty_and_gradient(latents)
    assert math.isfinite(nats) and gradient.isfinite().all() and gradient[:, :silent].eq(0).all()
    assert gradient[:, silent:].abs().sum() > 0 or silent == 12
    given, gradient = penalty_and_gradient(latents, latents.std(0))
    assert given == pytest.approx(nats, abs=1e-4) and gradient.isfinite().all()


@pytest.mark.parametrize("exponent", range(-40, 1, 4))
def test_scales_down_to_nothing_leave_value_and_gradient_finite(exponent):
    latents, scales = batch("quantised, scales of the continuous", 0)
    scales = scales.clone()
    scales[:3] = 10.0**exponent
    nats, gradient = penalty_and_gradient(latents, scales)
    assert math.isfinite(nats) and gradient.isfinite().all()
    small = latents.clone()
    small[:, :3] *= 10.0**exponent
    nats, gradient = penalty_and_gradient(small)
    assert math.isfinite(nats) and gradient.isfinite().all()


def test_gradients_reach_the_scales():
    latents, _ = batch("raw", 0)
    scales = latents.std(0).requires_grad_()
    (gradient,) = torch.autograd.grad(kernel_multiinformation(latents, scales), scales)
    assert gradient.isfinite().all() and gradient.ne(0).all()


def test_gradients_pass_the_quantiser():
    encoded = torch.randn(64, 12, generator=make_generator(0), requires_grad=True)
    quantizer = FiniteScalarQuantizer(12)
    nats = kernel_multiinformation(quantizer(encoded).latents, latent_scales(quantizer.bounded(encoded)))
    (gradient,) = torch.autograd.grad(nats, encoded)
    assert gradient.isfinite().all() and gradient.ne(0).any(0).all()


def test_the_codes_scales_are_those_of_the_population_and_a_bit():
    latents, _ = batch("raw", 0)
    torch.testing.assert_close(latent_scales(latents, "code"), (63 / 64) ** 0.5 * latents.std(0) + 1e-6)
    expected = kernel_multiinformation(latents, latent_scales(latents, "code"))
    torch.testing.assert_close(kernel_multiinformation(latents, protocol="code"), expected)
    assert kernel_multiinformation(latents, protocol="code") != kernel_multiinformation(latents)


@pytest.mark.parametrize("n_samples", [0, 1])
def test_fewer_than_two_samples_are_refused(n_samples):
    latents = torch.zeros(n_samples, 3)
    for call in (
        lambda: kernel_multiinformation(latents),
        lambda: kernel_multiinformation(latents, torch.ones(3)),
        lambda: latent_scales(latents, "code"),
    ):
        with warnings.catch_warnings(), pytest.raises(ValueError, match=f"latents has {n_samples} samples"):
            warnings.simplefilter("error")
            call()


@pytest.mark.parametrize("shape", [(2,), (4,), (), (64, 3), (3, 1)])
def test_scales_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match="scales has shape"):
        kernel_multiinformation(torch.randn(64, 3), torch.ones(shape))


def test_negative_scales_are_refused_and_zero_is_not():
    latents, _ = batch("raw", 0)
    with pytest.raises(ValueError, match="scales holds -0.5 but"):
        kernel_multiinformation(latents, torch.ones(12).index_fill(0, torch.tensor(3), -0.5))
    assert kernel_multiinformation(latents, torch.zeros(12)).isfinite()


@pytest.mark.parametrize("scales", [None, torch.ones(12)])
def test_an_unknown_protocol_is_refused(scales):
    with pytest.raises(ValueError, match="protocol is 'letter'"):
        kernel_multiinformation(batch("raw", 0)[0], scales, protocol="letter")


def test_nothing_depends_on_values_away_from_the_cpu():
    "A recorded training step may not look at numbers: on the meta device there are none."
    latents = torch.empty(64, 12, device="meta", requires_grad=True)
    for scales in (None, torch.empty(12, device="meta")):
        kernel_multiinformation(latents, scales).backward()
    assert latents.grad.shape == (64, 12)
