"The slot networks: any number of slots, every weight learns, sizes that cannot be are refused by name."

import pytest
import torch

from disentangle_repro.core.device import make_generator, seeded
from disentangle_repro.nets.slots import (
    ConvolutionalDecoder,
    PositionEmbedding,
    SlotEncoder,
    SpatialBroadcastDecoder,
    TransformerDecoder,
    composed,
    from_rgb,
    luminance_chroma,
    to_rgb,
)
from disentangle_repro.nets.style import TransposedConvolution

DECODERS = (SpatialBroadcastDecoder, ConvolutionalDecoder, TransformerDecoder)


@pytest.mark.parametrize(("image_size", "positions"), [(8, 8), (32, 32), (64, 32), (128, 32)])
def test_the_encoder_ends_at_a_map_of_at_most_32(image_size, positions):
    with seeded(0), torch.no_grad():
        encoder = SlotEncoder(5, image_size=image_size, channels=1, width=0.05)
        assert encoder(torch.rand(2, 1, image_size, image_size)).shape == (2, positions**2, 5)


def test_the_encoder_keeps_the_full_resolution_on_request():
    with seeded(0), torch.no_grad():
        encoder = SlotEncoder(5, image_size=64, width=0.05, strides=(1, 1, 1, 1))
        assert encoder(torch.rand(1, 3, 64, 64)).shape == (1, 64**2, 5)


def test_positions_are_read_row_by_row():
    with seeded(0), torch.no_grad():
        encoder = SlotEncoder(5, image_size=16, width=0.25)
        image = torch.zeros(1, 3, 16, 16)
        before = encoder(image)
        image[0, :, 2, 13] = 1
        changed = (encoder(image) - before).abs().sum(2).unflatten(1, (16, 16))[0] > 0
    rows, columns = changed.nonzero().T
    assert rows.min() == 0 and rows.max() == 2 + 8 and columns.min() == 13 - 8 and columns.max() == 15


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("image_size", [16, 64, 128])
def test_decoders_draw_any_number_of_slots(decoder, image_size):
    with seeded(0), torch.no_grad():
        decode = decoder(6, image_size=image_size, channels=1, width=0.05)
        for n_slots in (1, 2, 7):
            drawn = decode(torch.randn(2, n_slots, 6))
            assert drawn.image.shape == (2, 1, image_size, image_size) and drawn.image.isfinite().all()
            if drawn.masks is not None:
                torch.testing.assert_close(drawn.masks.sum(1), torch.ones(2, image_size, image_size))
                torch.testing.assert_close((drawn.masks[:, :, None] * drawn.parts).sum(1), drawn.image)


@pytest.mark.parametrize("decoder", DECODERS)
def test_images_of_a_batch_do_not_mix(decoder):
    with seeded(0), torch.no_grad():
        decode, slots = decoder(6, image_size=16, width=0.1), torch.randn(3, 4, 6)
        together, alone = decode(slots).image, decode(slots[1:2]).image
    torch.testing.assert_close(together[1:2], alone)


def test_masks_stay_whole_where_slots_are_sure():
    alpha = torch.tensor([1e4, -1e4, 0.0]).view(1, 3, 1, 1).requires_grad_()
    drawn = composed(torch.rand(1, 3, 2, 1, 1, generator=make_generator(0)), alpha)
    (gradient,) = torch.autograd.grad(drawn.image.sum(), alpha)
    assert drawn.masks.flatten().tolist() == [1, 0, 0] and gradient.isfinite().all()


def test_tables_of_positions_follow_the_model_but_are_not_saved():
    decoder = TransformerDecoder(6, image_size=16, width=0.1)
    assert decoder.double().waves.dtype == torch.float64
    assert not {"waves", "position.grid"} & set(decoder.state_dict())
    assert set(PositionEmbedding(4, (3, 3)).state_dict()) == {"plane.weight", "plane.bias"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SlotEncoder(5, image_size=66, strides=(2, 2, 1, 1)), "image_size is 66 .* multiple of 4"),
        (lambda: SpatialBroadcastDecoder(5, image_size=48), "image_size is 48 .* 8 times a power of two"),
        (lambda: ConvolutionalDecoder(5, image_size=4), "image_size is 4 "),
        (lambda: TransformerDecoder(5, image_size=16, heads=7), "heads is 7 but must divide 516"),
        (lambda: SlotEncoder(5, image_size=64, width=0.1)(torch.rand(1, 3, 64, 32)), "64x32 pixels .* 64x64"),
        (lambda: SlotEncoder(5, image_size=16, chroma=0.0), "chroma is 0.0 but must be a finite number above 0"),
        (lambda: SlotEncoder(5, image_size=16, channels=1, chroma=6.0), "channels is 1 but must be 3 where chroma"),
        *((lambda make=make: make(5, image_size=16, chroma=-6.0), "chroma is -6.0 but must be") for make in DECODERS),
        (lambda: luminance_chroma(float("nan")), "chroma is nan but must be"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("lowered", [False, True])
def test_maps_and_weights_lie_channels_last_and_biases_come_after(lowered):
    layout, outputs = {"memory_format": torch.channels_last}, []
    with seeded(0):
        encoder = SlotEncoder(6, image_size=16, width=0.125)
        decoder = SpatialBroadcastDecoder(6, image_size=16, width=0.125)
        images, slots = torch.rand(2, 3, 16, 16), torch.randn(2, 3, 6)
    for layer in (*encoder.convolutions, *decoder.layers):
        layer.register_forward_hook(lambda layer, inputs, output: outputs.append(output.is_contiguous(**layout)))
    with torch.autocast("cpu", torch.bfloat16, enabled=lowered):
        loss = encoder(images).float().square().mean() + decoder(slots).image.float().square().mean()
    loss.backward()
    assert len(outputs) == 13 and all(outputs)
    assert any(isinstance(layer, TransposedConvolution) for layer in decoder.layers)
    for parameter in (*encoder.convolutions.parameters(), *decoder.layers.parameters()):
        assert parameter.ndim < 4 or parameter.is_contiguous(**layout)
        assert parameter.grad.stride() == parameter.stride()


def in_coordinates(images, s):
    "Luminance and `s` times two orthonormal coordinates of chroma, written from the definition."
    red, green, blue = images.unbind(-3)
    first, second = (2 * red - green - blue) / 6**0.5, (green - blue) / 2**0.5
    return torch.stack([(red + green + blue) / 3**0.5, s * first, s * second], -3)


def in_rgb(drawn, s):
    "The transpose of that map."
    luminance, first, second = drawn.unbind(-3)
    grey, first, second = luminance / 3**0.5, s * first / 6**0.5, s * second / 2**0.5
    return torch.stack([grey + 2 * first, grey - first + second, grey - first - second], -3)


def with_and_without(network, chroma=6.0):
    "A network in luminance and chroma, and one in RGB with the same weights, in float64."
    made = []
    for option in (chroma, None):
        with seeded(0):
            made.append(network(6, image_size=16, width=0.1, chroma=option).double())
    return made


@pytest.mark.parametrize("network", [SlotEncoder, *DECODERS])
def test_chroma_changes_neither_weights_nor_what_is_saved(network):
    inside, rgb = with_and_without(network)
    assert list(inside.state_dict()) == list(rgb.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(inside.parameters(), rgb.parameters(), strict=True))
    assert list(rgb.state_dict()) and not {"coordinates.matrix", "rgb.matrix"} & set(inside.state_dict())


def test_with_chroma_the_encoder_sees_luminance_and_scaled_chroma():
    inside, rgb = with_and_without(SlotEncoder)
    images = torch.rand(2, 3, 16, 16, generator=make_generator(0)).double()
    torch.testing.assert_close(inside(images), rgb(in_coordinates(images, 6.0)), rtol=1e-5, atol=1e-5)
    assert (inside(images) - rgb(images)).abs().max() > 1e-3


@pytest.mark.parametrize("decoder", DECODERS)
def test_with_chroma_what_is_drawn_is_mapped_back_and_masks_are_not(decoder):
    inside, rgb = with_and_without(decoder)
    slots = torch.randn(2, 3, 6, generator=make_generator(0)).double()
    ours, plain = inside(slots), rgb(slots)
    torch.testing.assert_close(ours.image, in_rgb(plain.image, 6.0), rtol=1e-5, atol=1e-5)
    if plain.masks is not None:
        assert torch.equal(ours.masks, plain.masks)
        torch.testing.assert_close(ours.parts, in_rgb(plain.parts, 6.0), rtol=1e-5, atol=1e-5)


def test_in_bf16_the_map_of_colours_is_in_float32():
    images = torch.rand(2, 3, 8, 8, generator=make_generator(0))
    with torch.autocast("cpu", torch.bfloat16):
        lowered = to_rgb(6.0)(from_rgb(1 / 6)(images))
    torch.testing.assert_close(lowered, images)
