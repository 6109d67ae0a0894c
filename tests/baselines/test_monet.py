"MONet: masks, terms of the loss, and the training loop around it."

import pytest
import torch

from disentangle_repro.baselines.autoencoder import decode_all, encode_all
from disentangle_repro.baselines.monet import MONet, cut_out
from disentangle_repro.core.device import make_generator, seeded

N_SLOTS, DIM = 4, 6


def new_model(image_size=16, width=0.1, **settings):
    with seeded(0):
        return MONet(N_SLOTS, dim=DIM, image_size=image_size, width=width, **settings)


def halves(n, size, seed=0):
    generator = make_generator(seed)
    right = torch.arange(size) >= torch.randint(1, size, (n, 1), generator=generator)
    colours = torch.randint(256, (2, n, 1, 1, 3), generator=generator, dtype=torch.uint8)
    return torch.where(right[:, None, :, None], *colours).expand(n, size, size, 3).contiguous()


@pytest.fixture
def images():
    return halves(5, 16, seed=1)


def test_terms_are_nats_of_one_image(images):
    model = new_model()
    with torch.no_grad():
        _, once = model.loss(images[:1].expand(2, -1, -1, -1), make_generator(0))
        _, alone = model.loss(images[:1], make_generator(0))
    torch.testing.assert_close(once["kl"], alone["kl"])
    mean, raw = model.described(images[:1].permute(0, 3, 1, 2) / 255)[1].chunk(2, dim=1)
    latents = torch.distributions.Normal(mean, torch.nn.functional.softplus(raw))
    prior = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
    torch.testing.assert_close(alone["kl"], torch.distributions.kl_divergence(latents, prior).sum())


@pytest.mark.parametrize("image_size", [16, 64, 128])
def test_masks_of_a_pixel_sum_to_one(image_size):
    model = new_model(image_size, width=0.05)
    with torch.no_grad():
        log_masks = cut_out(model.attention, torch.rand(2, 3, image_size, image_size), N_SLOTS)
    assert log_masks.shape == (2, N_SLOTS, image_size, image_size)
    torch.testing.assert_close(log_masks.exp().sum(1), torch.ones(2, image_size, image_size))


def test_the_attention_network_looks_at_the_scope():
    with seeded(0), torch.no_grad():
        attention, image = new_model().attention, torch.rand(1, 3, 16, 16)
        full, used = torch.zeros(1, 1, 16, 16), torch.zeros(1, 1, 16, 16)
        used[..., :8] = -5
        assert not torch.allclose(*(attention(torch.cat([image, scope], 1)) for scope in (full, used)))


def test_one_slot_takes_the_whole_image(images):
    with seeded(0):
        model = MONet(1, dim=DIM, image_size=16, width=0.1)
    loss, terms = model.loss(images, make_generator(0))
    assert terms["mask_kl"] == 0 and model.segment(images).max() == 0
    loss.backward(inputs=list(model.parameters()))


def test_the_same_stream_gives_the_same_loss_and_leaves_the_global_one_alone(images):
    model, before = new_model(), torch.random.get_rng_state()
    with torch.no_grad():
        first, again, other = (model.loss(images, make_generator(seed))[0] for seed in (0, 0, 1))
    assert first == again != other
    assert torch.random.get_rng_state().equal(before)


def test_codes_are_means_and_decoded(images):
    model = new_model()
    slots = encode_all(model, images, batch_size=2)
    assert slots.shape == (5, N_SLOTS, DIM) and slots.equal(encode_all(model, images, batch_size=2))
    assert decode_all(model, slots).shape == images.shape and not model.discrete
    segments = model.segment(images)
    assert segments.shape == (5, 16, 16) and segments.min() >= 0 and segments.max() < N_SLOTS


def test_a_size_that_halving_misses_is_refused():
    with pytest.raises(ValueError, match="image_size is 48"):
        MONet(N_SLOTS, image_size=48)
