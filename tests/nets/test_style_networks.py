"The networks of qlae's appendix C.3 agree with listings that were written from the text and from the released code."

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from disentangle_repro.core.device import make_generator, seeded
from disentangle_repro.nets.style import ImageEncoder, StyleDecoder

SLOPE, EPSILON = {"paper": 0.3, "code": 0.2}, {"paper": 1e-5, "code": 1e-6}


def with_random_weights(make, protocol):
    "A narrow network for five latents in float64, all parameters moved at random, so that none is where it started."
    with seeded(0):
        network = make(5, width=0.1, protocol=protocol).double()
    generator = make_generator(0)
    for parameter in network.parameters():
        parameter.data.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return network


def normalised(features, epsilon):
    "Each channel of each image with mean zero and variance one (the variance divides by the number of places)."
    mean = features.mean((2, 3), keepdim=True)
    return (features - mean) / ((features - mean).square().mean((2, 3), keepdim=True) + epsilon).sqrt()


def numbered(weights, prefix, n):
    "Weight and bias (None where there is none) of `n` layers whose names begin with `prefix`, in order."
    names = [name.removesuffix(".weight") for name in weights if name.startswith(prefix) and name.endswith(".weight")]
    assert len(names) == n, names
    return [(weights[f"{name}.weight"], weights.get(f"{name}.bias")) for name in names]


def affine_map(features, weight, bias):
    return features @ weight.T + bias


def encode_by_the_text(w, images):
    "Each convolution is followed by a leaky rectifier, then instance normalisation (appendix C.3)."
    features = images
    for k, (weight, bias) in enumerate(numbered(w, "blocks", 12)):
        features = F.conv2d(features, weight, bias, stride=2 if k % 3 == 2 else 1, padding=1)
        features = normalised(torch.where(features > 0, features, 0.3 * features), 1e-5)
    first, second, last = numbered(w, "head", 3)
    features = affine_map(features.flatten(1), *first).clamp(min=0)
    return affine_map(affine_map(features, *second).clamp(min=0), *last)


def encode_by_the_code(w, images):
    "Convolution without bias, instance normalisation with a learned scale and offset, leaky rectifier."
    layers = numbered(w, "blocks", 24)  # a convolution and a normalisation by turns
    features = images
    for k in range(12):
        (weight, bias), (scale, offset) = layers[2 * k], layers[2 * k + 1]
        assert bias is None
        features = F.conv2d(features, weight, stride=2 if k % 3 == 2 else 1, padding=1)
        features = normalised(features, 1e-6) * scale[:, None, None] + offset[:, None, None]
        features = torch.where(features > 0, features, 0.2 * features)
    first, second, last = numbered(w, "head", 3)
    features = affine_map(features.flatten(1), *first).clamp(min=0)
    return affine_map(affine_map(features, *second).clamp(min=0), *last)


def decode(w, latents, protocol):
    "Transposed convolution, leaky rectifier, adaptive instance normalisation: the same order in text and code."
    rectified, slope, epsilon = protocol == "code", SLOPE[protocol], EPSILON[protocol]
    first, second = numbered(w, "style.", 2)
    style = affine_map(affine_map(latents, *first).clamp(min=0), *second).clamp(min=0)
    features = w["start"].repeat(len(latents), 1, 1, 1)
    for k in range(12):
        weight, bias = w[f"layers.{k}.convolution.weight"], w.get(f"layers.{k}.convolution.bias")
        assert (bias is None) == (protocol == "code")
        features = F.conv_transpose2d(features, weight, bias, stride=2 if k % 3 == 2 else 1, padding=1)
        features = torch.where(features > 0, features, slope * features)
        both = affine_map(style, w[f"layers.{k}.norm.style.weight"], w[f"layers.{k}.norm.style.bias"])
        scale, offset = (both.clamp(min=0) if rectified else both).chunk(2, dim=1)
        features = normalised(features, epsilon) * scale[:, :, None, None] + offset[:, :, None, None]
    weight, bias = w["last.weight"], w.get("last.bias")
    assert weight.shape[-1] == {"paper": 1, "code": 3}[protocol] and (bias is None) == (protocol == "code")
    return F.conv2d(features, weight, bias, padding=weight.shape[-1] // 2)


@pytest.mark.parametrize("protocol", ["paper", "code"])
def test_the_encoder_agrees_with_an_independent_listing(protocol):
    encoder = with_random_weights(ImageEncoder, protocol)
    images = torch.rand(3, 3, 64, 64, generator=make_generator(1), dtype=torch.float64)
    listing = {"paper": encode_by_the_text, "code": encode_by_the_code}[protocol]
    with torch.no_grad():
        torch.testing.assert_close(encoder(images), listing(encoder.state_dict(), images), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("protocol", ["paper", "code"])
def test_the_decoder_agrees_with_an_independent_listing(protocol):
    decoder = with_random_weights(StyleDecoder, protocol)
    latents = torch.randn(3, 5, generator=make_generator(1), dtype=torch.float64)
    with torch.no_grad():
        listed = decode(decoder.state_dict(), latents, protocol)
        torch.testing.assert_close(decoder(latents), listed, rtol=1e-5, atol=1e-8)


class TransposedWithBias(TorchDispatchMode):
    "Notes, of each transposed convolution that is computed, whether it was given a bias."

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, operation, types, arguments=(), named=None):
        if operation is torch.ops.aten.convolution.default and arguments[6]:
            self.seen.append(arguments[2] is not None)
        return operation(*arguments, **(named or {}))


def test_no_transposed_convolution_of_the_decoder_is_given_a_bias():
    decoder, latents = StyleDecoder(5, width=0.1), torch.randn(2, 5, generator=make_generator(0))
    for lowered in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=lowered), TransposedWithBias() as noted:
            decoder(latents)
        assert noted.seen == 12 * [False]
