"Sprites: their corners against written-down numbers, their images against the recipe done by hand, their masks."

import colorsys
import dataclasses
import math

import numpy as np
import pytest
import torch
from matplotlib.path import Path
from PIL import Image, ImageDraw

from disentangle_repro.data.sprites import FEATURES, SHAPES, SPRITES, draw_with_pillow

NAMES = "triangle square pentagon hexagon octagon circle star_4 star_5 star_6 spoke_4 spoke_5 spoke_6".split()


def scene(*sprites):
    "Sources of a scene: presence, x, y, shape, angle, scale, hue, saturation, value of each sprite."
    return torch.tensor([*sprites, *[(0,) * 9] * (4 - len(sprites))], dtype=torch.float64).flatten()[None]


def image_corners(sprite):
    "Corners on the unit square, by complex numbers."
    _, x, y, shape, angle, scale, *_ = sprite
    turned = scale * np.exp(1j * math.radians(angle)) * (SHAPES[NAMES[int(shape)]] @ [1, 1j]) + x + 1j * y
    return np.stack([turned.real, turned.imag], 1)


# -- the twelve shapes


def test_names_and_numbers_of_corners():
    assert list(SHAPES) == NAMES
    assert [len(corners) for corners in SHAPES.values()] == [3, 4, 5, 6, 8, 30, 8, 10, 12, 12, 15, 18]


@pytest.mark.parametrize("name", NAMES)
def test_area_one_anticlockwise_around_the_origin(name):
    x, y = SHAPES[name].T
    triangles = [(x[i - 1] * y[i] - x[i] * y[i - 1]) / 2 for i in range(len(x))]
    assert min(triangles) > 0 and abs(sum(triangles) - 1) < 1e-12
    assert np.abs(SHAPES[name].mean(0)).max() < 1e-12


@pytest.mark.parametrize(
    ("name", "corner", "x", "y"),
    [
        # from Spriteworld's formulas by hand: a corner in direction t is (cos t, sin t) / sqrt(A), with A the area of
        # the shape whose inner corners have distance 1: polygons k sin(c) cos(c), stars 2 k sin(c), spokes
        # k sin(c) (2 + cos(c)), for c of 180 / k degrees
        ("triangle", 0, 0, 0.8773826753),  # straight up; A = 1.2990381057
        ("square", 0, 0.5, 0.5),
        ("hexagon", 0, 0.6204032394, 0),  # A = 2.5980762114
        ("circle", 0, 0.5662587362, 0),  # A = 3.1186753623
        ("star_4", 0, 0.2973017788, 0.2973017788),  # a notch at 45 degrees; A = 5.6568542495
        ("star_5", 0, -0.3922807373, -0.1274597380),  # a notch at 198 degrees; A = 5.8778525229
        ("star_6", 1, 0.7071067812, 0.4082482905),
        ("spoke_4", 0, 0.6169294429, 0.2555405423),  # 45 degrees and 0 degrees; A = 2 + 4 sqrt(2)
        ("spoke_5", 1, -0.3310051855, -0.1075501043),  # 198 degrees
        ("spoke_6", 0, 0.6363805633, -0.1705176580),  # 0 degrees and -30 degrees; A = 8.5980762114
    ],
)
def test_written_down_corners(name, corner, x, y):
    np.testing.assert_allclose(SHAPES[name][corner], [x, y], rtol=0, atol=1e-9)


# -- drawn as Spriteworld draws


def by_the_recipe(sprites, size):
    "Fill polygons in order on a canvas five times as large, shrink all of it with Lanczos' filter, turn it over."
    canvas = Image.new("RGB", (5 * size, 5 * size))
    for sprite in sprites:
        colour = tuple(int(255 * level) for level in colorsys.hsv_to_rgb(*sprite[6:]))
        ImageDraw.Draw(canvas).polygon([tuple(corner) for corner in 5 * size * image_corners(sprite)], fill=colour)
    return np.flipud(np.array(canvas.resize((size, size), Image.Resampling.LANCZOS)))


def test_sprites_beyond_the_border_are_cut():
    for x, y in ((0, 0), (1, 0.5), (-0.05, 1.02), (2, 2), (-1, 0.5)):
        sprite = (1, x, y, 10, 33, 0.4, 0.2, 0.7, 0.9)
        assert (draw_with_pillow(scene(sprite), 64)[0].numpy() == by_the_recipe([sprite], 64)).all()
        areas = SPRITES.generate(scene(sprite))
        assert areas.isfinite().all() and (SPRITES.masks(scene(sprite)) > 0).any() == (areas > 0.5).any()


def test_what_is_absent_is_not_drawn():
    there, absent = (1, 0.3, 0.3, 4, 10, 0.2, 0.1, 1, 1), (0, 0.7, 0.7, 4, 10, 0.2, 0.1, 1, 1)
    for draw in (SPRITES.images, SPRITES.generate, SPRITES.masks):
        assert draw(scene(absent, there)).ne(0).any() and not draw(scene(absent)).any()
        assert not draw(scene(absent, there))[0, :32, 32:].any()


def test_later_sprites_lie_on_top():
    below, above = (1, 0.5, 0.5, 1, 0, 0.3, 0, 1, 1), (1, 0.5, 0.5, 1, 0, 0.1, 1 / 3, 1, 1)
    both = scene(below, above)
    for image in (SPRITES.images(both)[0].double() / 255, SPRITES.generate(both)[0]):
        assert image[32, 32].tolist() == [0, 1, 0] and image[32, 25].round(decimals=1).tolist() == [1, 0, 0]
    assert SPRITES.masks(both)[0, 32, [0, 25, 32]].tolist() == [0, 1, 2]
    assert SPRITES.masks(scene(above, below)).unique().tolist() == [0, 2]


# -- drawn as a function


def test_pixels_are_exact_means():
    "Four pixels of half the size have the mean of the one, for single sprites of every shape."
    sprites = [scene((1, 0.45, 0.55, shape, 11.0 * shape, 0.5, 0.6, 0.5, 1)) for shape in range(12)]
    sprites += [scene((1, 0.5, 0.5, shape, 90.0 * shape, 0.5, 0.6, 0.5, 1)) for shape in range(12)]
    coarse, fine = (dataclasses.replace(SPRITES, image_size=size).generate(torch.cat(sprites)) for size in (16, 32))
    torch.testing.assert_close(coarse, fine.unflatten(2, (16, 2)).unflatten(1, (16, 2)).mean((2, 4)), rtol=0, atol=1e-9)
    areas = fine.amax(3).sum((1, 2)) / 32**2
    torch.testing.assert_close(areas, torch.full_like(areas, 0.25), rtol=1e-9, atol=0)


def test_single_and_double_precision_agree():
    sources = SPRITES.sample(100, seed=2)
    single, double = SPRITES.generate(sources), SPRITES.generate(sources.double())
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)
    assert single.isfinite().all() and (single - double).abs().max() < 2e-3 and single.min() > -1e-3


def test_a_image_depends_on_its_own_sources_only():
    sources = SPRITES.sample(3, seed=1).requires_grad_()
    (slopes,) = torch.autograd.grad(SPRITES.generate(sources)[1].square().sum(), sources)
    assert slopes.isfinite().all() and slopes[[0, 2]].eq(0).all() and slopes[1].ne(0).any()


def test_derivatives_of_upright_and_level_edges():
    "A square that is not turned: between pixel lines its image is linear in its position and size, but for corners."
    sources = scene((1, 0.5 + 0.3 / 64, 0.5 + 0.4 / 64, 1, 0, 0.25, 0, 0, 1)).repeat(3, 1)
    along = torch.zeros_like(sources)
    along[range(3), [1, 2, 5]] = 0.1 / 64
    _, slopes = torch.func.jvp(SPRITES.generate, (sources,), (along,))
    torch.testing.assert_close(slopes, SPRITES.generate(sources + along) - SPRITES.generate(sources), rtol=0, atol=3e-3)
    assert slopes.abs().amax((1, 2, 3)).min() > 0.04


# -- masks


def test_masks_are_the_middles_inside():
    middles = (np.arange(64) + 0.5) / 64
    grid = np.stack(np.meshgrid(middles, middles[::-1]), 2).reshape(-1, 2)
    sources = SPRITES.sample(40, seed=4).double()
    for sprites, mask in zip(SPRITES.of_objects(sources).tolist(), SPRITES.masks(sources), strict=True):
        expected = np.zeros(64 * 64, np.uint8)
        for k, sprite in enumerate(sprites, start=1):
            if sprite[0] == 1:
                corners = image_corners(sprite)
                expected[Path(np.vstack([corners, corners[:1]]), closed=True).contains_points(grid)] = k
        assert mask.dtype == torch.uint8 and (mask.flatten().numpy() == expected).all()


# -- scenes


def test_scenes_are_a_prefix_and_in_range():
    many = SPRITES.sample(2000, seed=9)
    assert SPRITES.sample(77, seed=9).equal(many[:77]) and not SPRITES.sample(77, seed=8).equal(many[:77])
    sprites = SPRITES.of_objects(many)
    count = sprites[..., 0].sum(1)
    assert sorted(count.unique().tolist()) == [2, 3, 4]
    assert (sprites[..., 0] == (torch.arange(4) < count[:, None])).all() and not sprites[sprites[..., 0] == 0].any()
    for name, (low, high) in SPRITES.ranges.items():
        column = sprites[sprites[..., 0] == 1][:, FEATURES.index(name)]
        assert low <= column.min() and column.max() <= high
    assert SPRITES.size == 100_000 and SPRITES.categories["shape"] == tuple(NAMES)


@pytest.mark.gpu
def test_a_gpu_draws_the_same():
    sources = SPRITES.sample(500, seed=3)
    torch.testing.assert_close(SPRITES.generate(sources.cuda()).cpu(), SPRITES.generate(sources), rtol=0, atol=1e-3)
    assert (SPRITES.masks(sources.cuda()).cpu() != SPRITES.masks(sources)).double().mean() < 1e-5
    assert SPRITES.images(sources.cuda()).cpu().equal(SPRITES.images(sources))
