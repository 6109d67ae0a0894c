"What both sides of the comparison with addtt/object-centric-library are given."

import torch
from parity_torch import draw, draw_images

SIZE, SLOTS, BATCH = 32, 3, 2
SLOT_ATTENTION = {"dim": 16, "filters": 16, "mlp": 128, "learning_rate": 4e-4}
MONET = {"size": 64, "dim": 4, "beta": 0.6, "gamma": 0.4, "scales": (0.3, 0.5)}
LEARNING_STEPS = (0, 1, 5_000, 9_999, 10_000, 100_000, 250_000, 499_999)


def bytes_of(size: int = SIZE) -> torch.Tensor:
    return draw_images("objects", BATCH, size)


def images_of(size: int = SIZE) -> torch.Tensor:
    return bytes_of(size).permute(0, 3, 1, 2).double() / 255


def masks_of() -> tuple[torch.Tensor, torch.Tensor]:
    "True masks (4, 16, 16) with two labels of background, and predicted ones; the last scene has no object."
    true, predicted = torch.zeros(4, 16, 16, dtype=torch.long), torch.zeros(4, 16, 16, dtype=torch.long)
    for scene in range(3):
        true[scene, 8:] = 1
        for label in range(2, 4 + scene):
            row, column = (3 * label + 5 * scene) % 11, (7 * label + 2 * scene) % 10
            true[scene, row : row + 5, column : column + 6] = label
    noise = draw("masks", 4, 16, 16)
    predicted[:] = torch.where(noise > 1.0, (noise * 10).long() % 4, true % 4)
    return true, predicted


def pieces() -> dict[str, torch.Tensor]:
    "Images, parts of slots, log masks of the attention network and of the decoder, all in float64."
    images, parts = draw("pixels", 2, 3, 6, 5).sigmoid(), draw("parts", 2, SLOTS, 3, 6, 5).sigmoid()
    log_masks, decoded = (draw(name, 2, SLOTS, 6, 5).log_softmax(1) for name in ("masks", "decoded"))
    return {"images": images, "parts": parts, "log_masks": log_masks, "decoded": decoded}
