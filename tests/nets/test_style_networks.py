"The networks of qlae's appendix C.3 are those of a listing from the text; those of the code are in tests/parity."

import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from disentangle_repro.core.device import make_generator, seeded
from disentangle_repro.nets.style import ImageEncoder, StyleDecoder


def with_random_weights(make):
    "A narrow network for five latents in float64, all parameters moved at random, so that none is where it started."
    with seeded(0):
        network = make(5, width=0.1).double()
    generator = make_generator(0)
    for parameter in network.parameters():
        parameter.data.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return network


def rectified_and_normalised(features):
    "A leaky rectifier, then mean zero and variance one for each channel of each image (divided by the places)."
    features = torch.where(features > 0, features, 0.3 * features)
    mean = features.mean((2, 3), keepdim=True)
    return (features - mean) / ((features - mean).square().mean((2, 3), keepdim=True) + 1e-5).sqrt()


def numbered(weights, prefix, n):
    "Weight and bias of `n` layers whose names begin with `prefix`, in order."
    names = [name.removesuffix(".weight") for name in weights if name.startswith(prefix) and name.endswith(".weight")]
    assert len(names) == n, names
    return [(weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in names]


def affine_map(features, weight, bias):
    return features @ weight.T + bias


def encode_by_the_text(w, images):
    "Each convolution is followed by a leaky rectifier, then instance normalisation (appendix C.3)."
    features = images
    for k, (weight, bias) in enumerate(numbered(w, "blocks", 12)):
        features = F.conv2d(features, weight, bias, stride=2 if k % 3 == 2 else 1, padding=1)
        features = rectified_and_normalised(features)
    first, second, last = numbered(w, "head", 3)
    features = affine_map(features.flatten(1), *first).clamp(min=0)
    return affine_map(affine_map(features, *second).clamp(min=0), *last)


def decode_by_the_text(w, latents):
    "Transposed convolution, leaky rectifier, adaptive instance normalisation."
    first, second = numbered(w, "style.", 2)
    style = affine_map(affine_map(latents, *first).clamp(min=0), *second).clamp(min=0)
    features = w["start"].repeat(len(latents), 1, 1, 1)
    for k in range(12):
        weight, bias = w[f"layers.{k}.convolution.weight"], w[f"layers.{k}.convolution.bias"]
        features = F.conv_transpose2d(features, weight, bias, stride=2 if k % 3 == 2 else 1, padding=1)
        both = affine_map(style, w[f"layers.{k}.norm.style.weight"], w[f"layers.{k}.norm.style.bias"])
        scale, offset = both.chunk(2, dim=1)
        features = rectified_and_normalised(features) * scale[:, :, None, None] + offset[:, :, None, None]
    assert w["last.weight"].shape[2:] == (1, 1)
    return F.conv2d(features, w["last.weight"], w["last.bias"])


@torch.no_grad()
def test_the_encoder_agrees_with_an_independent_listing():
    encoder = with_random_weights(ImageEncoder)
    images = torch.rand(3, 3, 64, 64, generator=make_generator(1), dtype=torch.float64)
    listed = encode_by_the_text(encoder.state_dict(), images)
    torch.testing.assert_close(encoder(images), listed, rtol=1e-5, atol=1e-8)


@torch.no_grad()
def test_the_decoder_agrees_with_an_independent_listing():
    decoder = with_random_weights(StyleDecoder)
    latents = torch.randn(3, 5, generator=make_generator(1), dtype=torch.float64)
    listed = decode_by_the_text(decoder.state_dict(), latents)
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
