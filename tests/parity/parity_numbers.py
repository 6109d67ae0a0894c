"""What both sides of a comparison make from seeds: weights, images, latents, and a few numbers that stand for an array.

Only NumPy is needed, so that the scripts that run released code can import it in an environment of their own.
"""

import json
import zlib
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent / "fixtures"


def stream(*names):
    "A generator for that combination of names and numbers."
    return np.random.default_rng([zlib.crc32(str(name).encode()) for name in names])


def weight(name, shape, seed=0):
    "Values of a parameter, in float64, of an ordinary size for its kind."
    draw = stream(name, seed).standard_normal(shape)
    kind = name.rsplit(".", 1)[-1]
    if kind == "codebooks" and shape[0] < shape[1]:  # values of single numbers, a row for each latent
        return np.linspace(-0.5, 0.5, shape[-1]) + 0.02 * draw
    if kind == "start":
        return 0.5 + 0.5 * draw
    if len(shape) > 1:
        return draw / np.sqrt(np.prod(shape[1:]))
    return (1 if kind == "weight" else 0) + 0.2 * draw


def images(n, seed=0):
    "Random bytes, (n, 64, 64, 3): blocks of eight pixels and noise, so that no two are alike."
    generator = stream("images", seed)
    blocks = generator.integers(200, size=(n, 8, 8, 3)).repeat(8, axis=1).repeat(8, axis=2)
    return (blocks + generator.integers(56, size=(n, 64, 64, 3))).astype(np.uint8)


def summary(array):
    "Norm, and the products with two fixed vectors of normal numbers: any change of any entry shows in them."
    flat = np.asarray(array, dtype=np.float64).ravel()
    vectors = stream("summary", flat.size).standard_normal((2, flat.size))
    return [float(np.linalg.norm(flat)), *map(float, vectors @ flat)]


def difference(ours, released, floor=0.0):
    "Largest difference of two summaries, relative to the released norm, or to `floor` where that is larger."
    return float(np.abs(np.subtract(ours, released)).max() / max(released[0], floor, 1e-300))


def whole(summaries):
    "Norm of all arrays of a dictionary of summaries together."
    return float(np.sqrt(sum(numbers[0] ** 2 for numbers in summaries.values())))


def differences(ours, released):
    "Difference of each of many arrays; those that are rounding noise beside the others count against those."
    assert ours.keys() == released.keys(), sorted(ours.keys() ^ released.keys())
    floor = 1e-6 * whole(released)
    return {name: difference(ours[name], released[name], floor) for name in released}


def assert_close(ours, released, tolerance, what):
    "Arrays by name, as summaries: none differs by more than `tolerance`."
    worst = max((value, name) for name, value in differences(ours, released).items())
    assert worst[0] <= tolerance, f"{what} of {worst[1]} differs by {worst[0]:.3g}"


def representations(seed=0, n=2000):
    "Sources, and latents of several kinds that know them more or less: names to (n, latents) arrays."
    generator = stream("representations", seed)
    sources = generator.integers([6, 4, 3, 5], size=(n, 4))
    spread = (sources - sources.mean(0)) / sources.std(0)
    mixed = spread @ generator.standard_normal((4, 6)) + 0.5 * generator.standard_normal((n, 6))
    aligned = np.hstack([spread[:, [0, 1, 2, 3]] + 0.3 * generator.standard_normal((n, 4)), np.zeros((n, 2))])
    aligned[:, 4] = 0.05 * generator.uniform(-1, 1, n) * np.ptp(aligned[:, 0])  # range of 0.1 of the largest
    often_small = np.abs(generator.standard_normal(n)) * np.where(generator.random(n) < 0.3, 0.1, 0.004)
    often_small *= np.ptp(aligned[:, 0])
    aligned[:, 5] = np.where(sources[:, 1] > 1, often_small, -often_small)  # a range of 0.5, quartiles near each other
    grid = np.linspace(-0.5, 0.5, 10)
    quantized = grid[np.clip(((mixed / np.abs(mixed).max(0) + 1) / 2 * 10).astype(int), 0, 9)]
    quantized[:, 5] = np.where(generator.random(n) < 0.5, grid[4], grid[5])  # range of 0.11 of the largest
    quantized[:, 4] = grid[np.where(generator.random(n) < 0.9, 4, generator.integers(10, size=n))]
    names = generator.permuted(np.arange(24))[sources[:, 0] * 4 + sources[:, 1]][:, None]
    other = generator.permuted(np.arange(24))[sources[:, 2] * 5 + sources[:, 3]][:, None]
    index = np.hstack([names, other, generator.integers(24, size=(n, 2))])
    return sources, {"mixed": mixed, "aligned": aligned, "quantized": quantized, "index": index}


def read(name):
    "A fixture."
    return json.loads((HERE / f"{name}.json").read_text())


def write(name, content):
    "A fixture, one line for each array."
    text = json.dumps(content, indent=None, separators=(",", ":")).replace('],"', '],\n"').replace('},"', '},\n"')
    (HERE / f"{name}.json").write_text(text + "\n")
