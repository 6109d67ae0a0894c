"What both sides of the comparison with ituvisionlab/FactorQVAE are given."

import math

import numpy as np
import torch
from parity_torch import draw_images

SIZES = {"channel": 16, "n_latents": 4, "n_values": 8, "discriminator": 125, "temperature": math.exp(-0.3), "batch": 2}
MODELS = {
    "AE": ("Continuous", {}),
    "VAE": ("Continuous", {"kl_weight": 0.5}),
    "BioAE": ("Continuous", {"nonneg_coeff": 0.7, "activity_coeff": 0.3}),
    "QLAE": ("LatentQuantizer", {"commit_coeff": 0.2, "quantize_coeff": 0.3}),
    "DVAE": ("GumbelQuantizer", {"kl_weight": 0.5}),
    "QVAE": ("RelaxedVQQuantizer", {"kl_weight": 0.5}),
    "FactorVAE": ("Continuous", {"kl_weight": 0.5, "gamma": 0.4}),
    "FactorDVAE": ("GumbelQuantizer", {"kl_weight": 0.5, "gamma": 0.4}),
    "FactorQVAE": ("RelaxedVQQuantizer", {"kl_weight": 0.5, "gamma": 0.4}),
}  # the released name of what makes the latents, and weights that matter
BATCHES = (0, 1, 1_000, 25_000, 49_999, 50_000, 50_001, 75_000, 99_999)
DISCRETE = {"codes": True, "numbers": False}
METRICS = tuple(DISCRETE)


def bytes_of(parts: int) -> torch.Tensor:
    return draw_images("images", parts * SIZES["batch"], 64)


def images_of(parts: int) -> torch.Tensor:
    "As the released code's data sets give them: (batch, 3, 64, 64), from -0.5 to 0.5."
    return bytes_of(parts).permute(0, 3, 1, 2).double() / 255 - 0.5


def attribute_codes(kind: str) -> tuple[np.ndarray, np.ndarray]:
    "Sources, and latents that depend on them: indices of a codebook, or numbers; one latent does not vary much."
    rng = np.random.default_rng(3)
    sources = rng.integers([4, 3, 5], size=(450, 3))
    mixed = sources @ rng.normal(size=(3, 5)) * [1, 0.2, 1, 0.5, 1] + 0.4 * rng.normal(size=(450, 5))
    if kind == "numbers":
        mixed[:, 3] *= 0.01
        return sources, mixed
    edges = np.quantile(mixed, np.linspace(0, 1, 7)[1:-1], axis=0)
    codes = np.stack([np.searchsorted(edges[:, j], mixed[:, j]) for j in range(5)], axis=1)
    codes[:, 3] = 2
    return sources, codes
