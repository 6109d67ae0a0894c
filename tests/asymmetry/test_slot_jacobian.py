"What the chapter on slot Jacobians does not show: the paper's sizes, other devices and types, cases that are refused."

import bench_slot_jacobian as bench
import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from disentangle_repro.asymmetry import slot_jacobian as sj
from disentangle_repro.baselines.slot_attention import slot_autoencoder
from disentangle_repro.core.device import make_generator, seeded
from disentangle_repro.data.sprites import SPRITES
from disentangle_repro.nets.slots import SlotImages, SpatialBroadcastDecoder, TransformerDecoder


def random_jacobian(*shape):
    return torch.rand(*shape, generator=make_generator(0), dtype=torch.float64)


@pytest.mark.whole
def test_the_papers_decoder_of_sprites_as_jacfwd_has_it_and_faster():
    decoder, slots = bench.decoder_and_slots(**bench.SPRITES)

    @torch.no_grad()
    def of_first_slot(decoder, slots):
        return torch.func.jacfwd(lambda s: decoder(torch.cat([s, slots[:, 1:]], 1)).image[0])(slots[:, :1])

    sj.slot_jacobian(decoder, slots)
    a_fifth, whole = bench.timed(of_first_slot, decoder, slots)
    seconds, found = bench.timed(sj.slot_jacobian, decoder, slots)
    assert (found[0, 0] - whole.abs().sum((0, 3, 4, 5))).abs().max() < bench.MOST_DIFFERENCE and found[0, 0].max() > 0.1
    assert 5 * a_fifth / seconds > bench.LEAST_RATIO


@pytest.mark.whole
def test_a_image_of_clevr6_takes_less_than_4_gibibytes():
    assert bench.large_alone()[1] < bench.MOST_MEMORY


@pytest.mark.parametrize("kind", [SpatialBroadcastDecoder, TransformerDecoder])
def test_shortcuts_are_for_the_very_class(kind):
    class Darker(kind):
        def forward(self, slots):
            return SlotImages(0.5 * super().forward(slots).image)

    made = []
    for each in (kind, Darker):
        with seeded(0):
            made.append(each(4, image_size=8, width=0.1).double())
    slots = torch.randn(2, 3, 4, generator=make_generator(0)).double()
    plain, darker = (sj.slot_jacobian(decoder, slots) for decoder in made)
    torch.testing.assert_close(darker, plain / 2)


@pytest.mark.parametrize("kind", [SpatialBroadcastDecoder, TransformerDecoder])
def test_shortcuts_differentiate_the_image_in_rgb(kind):
    with seeded(0):
        decoder = kind(4, image_size=8, width=0.1, chroma=6.0).double()
    slots = torch.randn(2, 3, 4, generator=make_generator(0)).double()
    torch.testing.assert_close(sj.slot_jacobian(decoder, slots), sj.forward_jacobian(decoder, slots, 4))


@pytest.mark.parametrize("kind", ["broadcast", "convolutional", "transformer"])
def test_a_models_decoder_keeps_its_gradients_and_parameters(kind):
    with seeded(0):
        model = slot_autoencoder(3, dim=8, image_size=16, decoder=kind, width=0.1)
    images = torch.randint(256, (2, 16, 16, 3), generator=make_generator(0), dtype=torch.uint8)
    before = [p.clone() for p in model.parameters()]
    slots = model.encode(images)
    jacobian = sj.slot_jacobian(model.decoder, slots)
    assert jacobian.shape == (2, 3, 16, 16) and jacobian.dtype == torch.float32
    assert not jacobian.requires_grad and slots.requires_grad and torch.is_grad_enabled()
    assert all(p.grad is None and torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))


@pytest.mark.parametrize("chunk", [1, 3, 7, 1000])
def test_images_do_not_depend_on_those_beside_them(chunk):
    for kind in (SpatialBroadcastDecoder, TransformerDecoder):
        with seeded(0):
            decoder = kind(3, image_size=8, width=0.1).double()
        slots = torch.randn(5, 2, 3, generator=make_generator(0)).double()
        together = sj.slot_jacobian(decoder, slots, chunk=chunk)
        alone = torch.cat([sj.slot_jacobian(decoder, each[None]) for each in slots])
        torch.testing.assert_close(together, alone, rtol=1e-9, atol=0)


@pytest.mark.parametrize("decoder", ["broadcast", "convolutional", "transformer"])
def test_images_of_a_model_have_their_channels_last_and_are_seen_to(decoder):
    with seeded(0):
        model, slots = slot_autoencoder(2, dim=4, image_size=16, decoder=decoder, width=0.1), torch.randn(1, 2, 4)
    expected = sj.slot_jacobian(model.decoder, slots)
    images = lambda z: model.decoder(z).image.movedim(1, 3)  # noqa: E731
    torch.testing.assert_close(sj.slot_jacobian(model.decode, slots), expected)
    torch.testing.assert_close(sj.slot_jacobian(images, slots), expected)


def test_numpy_and_torch_of_any_precision_and_masks_of_any_integers():
    jacobian, masks = random_jacobian(3, 4, 5, 6), torch.randint(4, (3, 5, 6), generator=make_generator(1))
    scores = sj.j_ari(jacobian, masks), sj.jis(jacobian, masks > 0)
    assert all(isinstance(score, float) for score in scores)
    for j, m in ((jacobian.numpy(), masks.numpy().astype(np.uint8)), (jacobian.float(), masks.short())):
        assert sj.j_ari(j, m) == scores[0] and np.isclose(sj.jis(j, m > 0), scores[1], atol=1e-6)


def test_j_ari_is_the_mean_of_scikit_learns_over_images_with_objects():
    jacobian, masks = random_jacobian(20, 4, 6, 6), torch.randint(3, (20, 6, 6), generator=make_generator(1))
    masks[3] = 0
    owners = jacobian.argmax(1)
    each = [adjusted_rand_score(m[m > 0], o[m > 0]) for m, o in zip(masks, owners, strict=True) if m.any()]
    assert np.isclose(sj.j_ari(jacobian, masks), np.mean(each))
    both = [adjusted_rand_score(m[m > 1], o[m > 1]) for m, o in zip(masks, owners, strict=True) if (m > 1).any()]
    assert np.isclose(sj.j_ari(jacobian, masks, background=(0, 1)), np.mean(both))


def test_dead_pixels_do_not_count():
    jacobian, masks = random_jacobian(2, 3, 4, 4), torch.randint(1, 3, (2, 4, 4), generator=make_generator(1))
    alive = torch.rand(2, 4, 4, generator=make_generator(2)) > 0.3
    dead = jacobian * alive[:, None]
    assert np.isclose(sj.jis(dead), sj.jis(jacobian, alive))
    assert np.isclose(sj.j_ari(dead, masks), sj.j_ari(jacobian, masks.where(alive, 0)))
    assert np.isclose(sj.j_ari(dead, masks - 5, background=7), sj.j_ari(dead, masks)), "labels below zero"
    with pytest.raises(ValueError, match="0 in every pixel that counts"):
        sj.jis(torch.zeros(1, 2, 3, 3))
    with pytest.raises(ValueError, match="0 in every pixel that counts"):
        sj.j_ari(torch.zeros(1, 2, 3, 3), torch.ones(1, 3, 3, dtype=torch.int))


def test_norms_as_small_and_as_large_as_they_come():
    jacobian = random_jacobian(2, 3, 4, 4)
    for scale in (1e-200, 1e200):
        assert np.isclose(sj.jis(scale * jacobian), sj.jis(jacobian))


def test_what_is_refused():
    jacobian, masks = random_jacobian(2, 3, 4, 4), torch.ones(2, 4, 4, dtype=torch.int)
    worse = jacobian.clone()
    worse[1, 2, 0, 3] = torch.nan
    for call, words in (
        (lambda: sj.jis(jacobian[0]), r"jacobian has shape \(3, 4, 4\)"),
        (lambda: sj.jis(jacobian[:0]), r"jacobian has shape \(0, 3, 4, 4\)"),
        (lambda: sj.jis(worse), r"jacobian\[1, 2, 0, 3\] is nan"),
        (lambda: sj.j_ari(jacobian, masks.float()), "masks holds torch.float32"),
        (lambda: sj.j_ari(jacobian, masks[:1]), r"masks has shape \(1, 4, 4\)"),
        (lambda: sj.j_ari(0 * jacobian, masks), "jacobian is 0 in every pixel that counts"),
        (lambda: sj.jis(jacobian, masks), "foreground holds torch.int32"),
        (lambda: sj.slot_jacobian(lambda s: s, torch.ones(2, 3, 0)), r"slots has shape \(2, 3, 0\)"),
        (
            lambda: sj.slot_jacobian(lambda s: s[:1, None], torch.ones(9, 3, 1)),
            r"decoder made \(1, 1, 3, 1\) from 9 images",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_a_scene_that_lacks_objects_has_slots_that_do_nothing():
    scenes = SPRITES.sample(4, seed=0).double()
    present = SPRITES.of_objects(scenes)[:, :, 0] > 0.5
    jacobian = sj.true_jacobian(SPRITES, scenes)
    assert torch.equal(jacobian.flatten(2).amax(2) > 0, present) and not present.all()
    assert sj.j_ari(jacobian, SPRITES.masks(scenes)) > 0.95
