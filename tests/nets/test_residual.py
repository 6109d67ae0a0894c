"The residual networks: as large as T6 says, part by part, and the same maps as the released formulation, written out."

import pytest
import torch
from residual_sizes import N_LATENTS, decoder_size, encoder_size
from torch.nn import functional as F

from disentangle_repro.core.device import seeded
from disentangle_repro.core.errors import PROTOCOLS
from disentangle_repro.nets.residual import ResidualDecoder, ResidualEncoder


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def gelu(x):
    return x / 2 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))


def standardised(x):
    variance, mean = torch.var_mean(x, (2, 3), correction=0, keepdim=True)
    return (x - mean) / (variance + 1e-5).sqrt()


def released_block(block, x, norm):
    branch = x
    for convolution, learned in zip(block.convolutions, block.norms, strict=True):
        branch = F.conv2d(branch, convolution.weight, convolution.bias, padding=1)
        branch = gelu(norm(learned, standardised(branch)))
    if x.shape == branch.shape:
        return x + branch
    return F.conv2d(x, block.shortcut.weight, block.shortcut.bias) + branch


def released_encoder(encoder, images):
    def norm(learned, x):
        return x * learned.weight[:, None, None] + learned.bias[:, None, None]

    x = (images - 0.5) / 0.5
    for first, second, halving in encoder.stages:
        x = F.pixel_unshuffle(released_block(second, released_block(first, x, norm), norm), 2)
        x = F.conv2d(x, halving.weight.reshape(*halving.bias.shape, -1, 1, 1), halving.bias)
    return encoder.head(x.flatten(2).mean(2))


def released_decoder(decoder, latents):
    "The conditioning vector, what each stage puts out, and what each doubling takes."
    w, taken = decoder.condition(latents), []

    def norm(learned, x):
        scale, shift = F.linear(w, learned.projection.weight, learned.projection.bias)[:, :, None, None].chunk(2, 1)
        return x * (1 + scale) + shift

    maps = [torch.ones(len(latents), decoder.stages[0].doubling.in_channels, 4, 4, dtype=latents.dtype)]
    for stage in decoder.stages:
        x = maps[-1]
        for each in stage.blocks:
            x = released_block(each, x, norm)
        taken.append(x)
        doubled = x.repeat_interleave(2, 2).repeat_interleave(2, 3)
        maps.append(F.conv2d(doubled, stage.doubling.weight, stage.doubling.bias, padding=1))
    return w, maps[1:], taken


@pytest.fixture(scope="module")
def encoder():
    with seeded(0):
        return ResidualEncoder(N_LATENTS, width=0.125).double()


@pytest.fixture(scope="module")
def decoder():
    with seeded(1):
        return ResidualDecoder(N_LATENTS, width=0.125).double()


@pytest.fixture
def images():
    with seeded(2):
        return torch.rand(3, 3, 64, 64, dtype=torch.float64)


@pytest.fixture
def latents():
    with seeded(3):
        return torch.randn(3, N_LATENTS, dtype=torch.float64)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("width", [1.0, 0.5])
@pytest.mark.parametrize(("network", "size"), [(ResidualEncoder, encoder_size), (ResidualDecoder, decoder_size)])
def test_a_network_is_as_large_as_the_released_one(network, size, width, channels):
    net = network(N_LATENTS, width=width, channels=channels)
    assert {part: count(module) for part, module in net.named_children()} == size(channels, width)
    start = 0 if network is ResidualEncoder else int(512 * width) * 4 * 4
    assert count(net) == sum(size(channels, width).values()) + start


def test_the_released_numbers_of_parameters():
    assert [count(network(12)) for network in (ResidualEncoder, ResidualDecoder)] == [4_098_092, 16_140_163]


def test_all_protocols_are_the_same_network_and_others_are_refused():
    for network in (ResidualEncoder, ResidualDecoder):
        shapes = [[p.shape for p in network(4, width=0.1, protocol=name).parameters()] for name in PROTOCOLS]
        assert shapes[0] == shapes[1] == shapes[2]
        with pytest.raises(ValueError, match="protocol is 'letter' but must be one of 'paper', 'text', 'code'"):
            network(4, width=0.1, protocol="letter")


def test_the_encoder_is_the_released_formulation(encoder, images):
    torch.testing.assert_close(encoder(images), released_encoder(encoder, images), rtol=1e-9, atol=1e-11)


def test_the_decoder_is_the_released_formulation(decoder, latents):
    w, maps, taken = released_decoder(decoder, latents)
    close = {"rtol": 1e-9, "atol": 1e-11}
    torch.testing.assert_close(decoder(latents), maps[3], **close)
    for ours, released in zip(decoder.activations(latents), [w, *maps[:2], taken[2]], strict=True):
        torch.testing.assert_close(ours, released, **close)
    differences = maps[2][1:] - maps[2][:-1]
    torch.testing.assert_close(decoder.doubled(taken[2][1:] - taken[2][:-1]), differences, **close)


def test_activations_are_left_as_they_were_found(decoder, latents):
    activations = decoder.activations(latents)
    copies = [a.clone() for a in activations]
    decoder.stages[2](activations[2], activations[0])
    decoder.stages[1](activations[1], activations[0])
    assert all(torch.equal(a, b) for a, b in zip(activations, copies, strict=True))


@pytest.mark.parametrize("size", [(32, 32), (128, 128), (64, 32)])
def test_another_image_size_is_refused(encoder, size):
    with pytest.raises(ValueError, match=f"images are {size[0]}x{size[1]} pixels but the encoder takes 64x64"):
        encoder(torch.zeros(1, 3, *size, dtype=torch.float64))


def test_gradients_reach_all_parameters_but_the_biases_that_are_normalised_away(encoder, decoder, images):
    loss = F.binary_cross_entropy_with_logits(decoder(encoder(images)), images)
    for network in (encoder, decoder):
        for name, gradient in zip(
            dict(network.named_parameters()),
            torch.autograd.grad(loss, list(network.parameters()), retain_graph=True),
            strict=True,
        ):
            assert gradient.isfinite().all()
            assert ("convolutions" in name and name.endswith("bias")) == (gradient.abs().max().item() < 1e-12), name


def test_what_is_saved_is_what_is_learned(encoder, decoder):
    for network in (encoder, decoder):
        assert set(network.state_dict()) == {name for name, _ in network.named_parameters()}
