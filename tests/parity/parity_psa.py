"What both sides of the comparison with koriavinash1/PSA are given."

import torch
from parity_torch import draw, draw_images

SLOTS, BATCH, DIM, LEARNING_RATE = 4, 2, 64, 2e-4
CASES = {  # the options of each script, but for those that no number depends on; and the configuration
    "ae": {"model": "ASA", "niters": 0},
    "sa": {"model": "SA", "niters": 3},
    "sa_noa": {"model": "SA", "niters": 3, "no_additive_decoder": True},
    "psa": {"model": "SA", "niters": 5, "EM_slots": "yes_fixed_map"},
    "psa_noa": {"model": "SA", "niters": 5, "EM_slots": "yes_fixed_map", "no_additive_decoder": True},
    "psa_proj": {"model": "SA", "niters": 5, "EM_slots": "yes_dynamic_mle", "x_like": "mse"},
}
SIZES = {"objects_room": 32, "clevr": 64}  # pixels a side of each configuration
LEARNING_STEPS = (0, 1, 2_500, 4_999, 5_000, 5_001, 300_000)
IMAGES, SETS, DIMS = 60, 3, 5  # of the slots that are scored


def bytes_of(size: int) -> torch.Tensor:
    return draw_images("psa", BATCH, size)


def slots_of(kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    "Two sets of slots (images, slots, dims): the same in another order, with noise, bent, or with nothing in common."
    a = draw("slots", IMAGES, SETS, DIMS) + 3 * draw("slots of all images", 1, SETS, DIMS)
    orders = draw("orders", IMAGES, SETS).argsort(1)
    b = a.take_along_dim(orders[:, :, None], 1)
    noise = draw("noise of slots", *b.shape)
    return a, {"shuffled": b, "noisy": b + 0.7 * noise, "bent": (b + b.roll(1, 2)).tanh() + 0.1 * noise,
               "unrelated": noise}[kind]  # fmt: skip


KINDS = ("shuffled", "noisy", "bent", "unrelated")
