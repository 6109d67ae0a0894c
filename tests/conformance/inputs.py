"Sources and latents on which the package and the definitions are compared: ordinary ones, and the corners."

import numpy as np

COUNTS = (3, 8, 5, 15, 4)


def mixed(seed=0, n=1500, latents=7, noise=0.3, counts=COUNTS):
    "Sources, and latents that mix them."
    generator = np.random.default_rng(seed)
    sources = generator.integers(counts, size=(n, len(counts)))
    mixing = generator.normal(size=(len(counts), latents)) * (generator.random((len(counts), latents)) < 0.5)
    return sources, sources / counts @ mixing + noise * generator.normal(size=(n, latents))


def with_column(sources, latents, column):
    return sources, np.column_stack([latents, column])


def corners():
    "By name: what may be decided differently at the edge of a bin, or divides by zero."
    generator = np.random.default_rng(1)
    sources, latents = mixed(2)
    n = len(sources)
    edges = np.linspace(0, 1, 21)
    grid = np.stack(np.meshgrid(np.arange(4), np.arange(5), np.arange(3), indexing="ij"), -1).reshape(-1, 3)
    wide = np.stack(np.meshgrid(*map(np.arange, (2, 3, 4, 3)), indexing="ij"), -1).reshape(-1, 4)
    return {
        "a constant latent": with_column(sources, latents, np.full(n, 3.7)),
        "a constant latent of 1e-300": with_column(sources, latents, np.full(n, 1e-300)),
        "only constant latents": (sources, np.ones((n, 3)) * [0, 1, -2]),
        "few distinct values": (sources, np.round(latents)),
        "two distinct values": (sources, (latents > 0).astype(float)),
        "values on the edges of bins": (sources, edges[generator.integers(21, size=latents.shape)]),
        "values on the edges, rounded": (sources, np.round(generator.integers(21, size=latents.shape) * 0.05, 2)),
        "many at the maximum": (sources, np.minimum(latents, np.quantile(latents, 0.6, axis=0))),
        "one far outlier": (sources, latents + 1e6 * (np.arange(n) == 0)[:, None]),
        "integers": (sources, np.round(10 * latents).astype(int)),
        "unsigned bytes": (sources, np.round(20 * latents).astype(np.uint8)),
        "float32": (sources, latents.astype(np.float32)),
        "float32 on edges": (sources, edges[generator.integers(21, size=latents.shape)].astype(np.float32)),
        "tiny": (sources, 1e-9 * latents),
        "huge and shifted": (sources, 1e9 * latents + 1e12),
        "sources with gaps between their values": (sources * 7 - 20, latents),
        "sources as floats": (sources.astype(float), latents),
        "a full grid, each source in a latent": (grid, grid),
        "a full grid, and a latent of nothing": (grid, np.column_stack([grid, np.tile([0.0, 1.0], 30)])),
        "a full grid, a latent independent of all": (wide[:, :3], wide[:, [3, 0, 3]]),
        "a full grid, duplicates": (grid, grid[:, [0, 0, 1, 2, 2]]),
        "fewer samples than bins": (sources[:12], latents[:12]),
        "two sources": (sources[:, :2], latents),
        "two latents": (sources, latents[:, :2]),
    }
