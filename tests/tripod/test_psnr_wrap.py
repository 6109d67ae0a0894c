"""The PSNR of Tripod's released code, which squares bytes as bytes, and ours, which does not."""

import numpy as np
import pytest
import torch

from disentangle_repro.metrics import psnr
from disentangle_repro.tripod.paper_against_code import wrapped_psnr


def flat(*levels):
    "A image of 2 x 2 x 3 for each grey level."
    return np.stack([np.full((2, 2, 3), level, np.uint8) for level in levels])


def decibels(squared_error):
    return 10 * np.log10(255**2 / squared_error)


# 16^2 = 256 = 0, 17^2 = 289 = 33, 20^2 = 400 = 144, 100^2 = 10000 = 16, 255^2 = 65025 = 1 modulo 256
@pytest.mark.parametrize("error, counted", [(1, 1), (3, 9), (15, 225), (17, 33), (20, 144), (100, 16), (255, 1)])
def test_squares_are_counted_modulo_256_and_signs_do_not_matter(error, counted):
    for a, b in ((0, error), (error, 0)):
        assert wrapped_psnr(flat(a), flat(b)) == pytest.approx(decibels(counted))
        assert psnr(flat(a), flat(b)) == pytest.approx(decibels(error**2))


@pytest.mark.parametrize("error", [16, 32, 48, 64, 128, 240])
def test_multiples_of_16_are_no_error_when_wrapped(error):
    for a, b in ((0, error), (error, 0)):
        assert wrapped_psnr(flat(a), flat(b)) == np.inf
        assert psnr(flat(a), flat(b)) == pytest.approx(20 * np.log10(255 / error))


def test_wrapping_precedes_the_mean_over_pixels_and_each_image_counts_by_itself():
    images, reconstructions = flat(100, 100), flat(100, 100)
    reconstructions[0, 0, 0, 0], reconstructions[0, 1, 1, 2] = 118, 98  # 324 = 68 and 4, of 12 values
    reconstructions[1] += 5
    expected = (decibels(72 / 12) + decibels(25)) / 2
    assert wrapped_psnr(images, reconstructions) == pytest.approx(expected)
    assert psnr(images, reconstructions) == pytest.approx((decibels(328 / 12) + decibels(25)) / 2)
    assert wrapped_psnr(torch.tensor(images), torch.tensor(reconstructions)) == pytest.approx(expected)


def test_it_is_never_below_the_true_one_and_equals_it_up_to_15_levels():
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(8, 4, 4, 3)).astype(np.uint8)
    others = rng.integers(256, size=images.shape).astype(np.uint8)
    assert wrapped_psnr(images, others) > psnr(images, others) + 5
    near = np.clip(images.astype(int) + rng.integers(-15, 16, size=images.shape), 0, 255).astype(np.uint8)
    assert wrapped_psnr(images, near) == pytest.approx(psnr(images, near))


def test_it_leaves_its_arguments_alone():
    images, reconstructions = flat(3), flat(200)
    wrapped_psnr(images, reconstructions)
    assert (images == 3).all() and (reconstructions == 200).all()


def test_only_bytes_of_one_shape_are_taken():
    with pytest.raises(ValueError, match="images holds float64: needed is uint8"):
        wrapped_psnr(flat(0) / 255, flat(1) / 255)
    with pytest.raises(ValueError, match="reconstructions holds float64 but images holds uint8"):
        wrapped_psnr(flat(0), flat(1) / 255)
    with pytest.raises(ValueError, match=r"reconstructions has shape \(2, 2, 2, 3\) but images has \(1, 2, 2, 3\)"):
        wrapped_psnr(flat(0), flat(1, 2))
