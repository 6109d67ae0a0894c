"The slot networks: any number of slots, every weight learns, sizes that cannot be are refused by name."

from copy import deepcopy

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
    position_waves,
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


def test_every_weight_of_the_encoder_learns():
    with seeded(0):
        encoder = SlotEncoder(6, image_size=64, width=0.1)
        encoder(torch.rand(2, 3, 64, 64)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in encoder.parameters())


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
def test_every_weight_of_a_decoder_learns(decoder):
    with seeded(0):
        decode, slots = decoder(6, image_size=16, width=0.1), torch.randn(3, 4, 6, requires_grad=True)
        target = torch.rand(3, 3, 16, 16)
    (decode(slots).image - target).square().mean().backward()
    for name, parameter in decode.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name
    assert (slots.grad.abs().sum(2) > 0).all(), "a slot gets no gradient"


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


@pytest.mark.parametrize("size", [16, 64, 128])
def test_no_two_pixels_have_the_same_waves(size):
    waves = position_waves(size).flatten(0, 1)
    assert len((waves * 1e4).round().unique(dim=0)) == size**2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SlotEncoder(5, image_size=66, strides=(2, 2, 1, 1)), "image_size is 66 .* multiple of 4"),
        (lambda: SpatialBroadcastDecoder(5, image_size=48), "image_size is 48 .* 8 times a power of two"),
        (lambda: ConvolutionalDecoder(5, image_size=4), "image_size is 4 "),
        (lambda: TransformerDecoder(5, image_size=16, heads=7), "heads is 7 but must divide 516"),
        (lambda: SlotEncoder(5, image_size=64, width=0.1)(torch.rand(1, 3, 64, 32)), "64x32 pixels .* 64x64"),
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


@pytest.mark.parametrize("network", [SlotEncoder, SpatialBroadcastDecoder, ConvolutionalDecoder])
def test_the_layout_of_maps_changes_no_number(network):
    with seeded(0):
        last = network(6, image_size=16, width=0.2)
        given = torch.rand(2, 3, 16, 16) if network is SlotEncoder else torch.randn(2, 3, 6)
    first = deepcopy(last).to(memory_format=torch.contiguous_format)
    assert not all(p.is_contiguous() for p in last.parameters()) and all(p.is_contiguous() for p in first.parameters())
    found = []
    for form in (last, first):
        made = form(given) if network is SlotEncoder else form(given).image
        gradients = torch.autograd.grad(made.square().sum(), list(form.parameters()))
        found.append([tensor.detach() for tensor in (made, *gradients)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6 * float(theirs.abs().max()))
