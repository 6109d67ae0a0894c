"What both sides of the comparison with JackBrady/interaction-asymmetry are given."

import torch
from parity_torch import draw, draw_images

SIZE, SLOTS, DIM, FILTERS, BATCH = 20, 3, 8, 8, 2
SMALL = {"lifted": 48, "queried": 36}  # of the decoder, for 516 and 180
BROADCAST_FILTERS = 8  # for 32
BROADCAST_GAIN = 4.0  # of its weights: a step of two pixels leaves a quarter of a kernel
WEIGHTS = {"sigma": 5.0, "beta": 30.0, "alpha": 20.0}  # of reconstruction, KL divergence and interaction
LEARNING_RATE = 5e-4
JACOBIAN = {"size": 64, "dim": 2}  # of decoders small enough for all their derivatives
ITERATIONS = (1, 2, 1000, 2500, 9_999, 10_000, 10_001, 24_999, 25_001, 29_999)
ITERATIONS += (30_001, 30_002, 100_000, 400_000, 500_000)
SPRITES = {"slots": 5, "dim": 32, "filters": 32, "lifted": 516, "queried": 180}  # of the released models for Sprites
AT_A_QUARTER = SPRITES | {"size": 32, "filters": 8, "hidden": 32, "lifted": 129, "queried": 45, "inner": 516}
INITIALISED = 8  # models whose initial weights are pooled


def bytes_of(size: int = SIZE) -> torch.Tensor:
    return draw_images("scenes", BATCH, size)


def slots_of(name: str, count: int, dim: int) -> torch.Tensor:
    return draw(name, BATCH, count, dim)


def jacobians_and_masks() -> tuple[torch.Tensor, torch.Tensor]:
    "Slot Jacobians (3, 4, 16, 16), and scenes with foregrounds of different size whose objects move some slot most."
    masks = torch.zeros(3, 16, 16, dtype=torch.long)
    masks[0, 2:9, 3:10], masks[0, 10:15, 8:15] = 1, 2
    masks[1, 1:4, 1:15], masks[1, 6:9, 2:6], masks[1, 10:16, 4:9] = 1, 2, 3
    masks[2, 5:8, 5:8] = 1
    slope = draw("slope", 3, 4, 16, 16).abs() + 2.0 * torch.nn.functional.one_hot(masks, 4).movedim(3, 1)
    return slope, masks


def masks_with_an_empty_scene() -> torch.Tensor:
    _, masks = jacobians_and_masks()
    masks[2] = 0
    return masks
