"Each proof check of the interaction chapter goes red when the scene or the derivative it stands on is broken."

from dataclasses import replace

import torch
from mutations import Chapter, proof_tests

chapter = Chapter("data/15_interaction")


SPRITES, SHAPES3D = chapter.SPRITES, chapter.SHAPES3D


def glowing(sources, image_size, samples):
    "A little of each sprite's light falls everywhere."
    images = SPRITES.draw(sources, image_size, samples)
    return images + 0.01 * images.mean((1, 2), keepdim=True)


def of_one_brightness(sources, image_size, samples):
    "A sprite's value makes no difference."
    value = torch.tensor([name.startswith("value") for name in SPRITES.names])
    return SPRITES.draw(torch.where(value, 1, sources), image_size, samples)


def as_screens_show_it(values, image_size, samples, repeats):
    "Light to the power 1 / 2.2, which mixes what was a sum."
    return (SHAPES3D.draw(values, image_size, samples, repeats) + 0.01) ** (1 / 2.2)


MUTATIONS = [
    ("Definition 3.2", "", "SPRITES", replace(SPRITES, draw=glowing)),
    ("Assumption 3.5 (ii)", "", "SPRITES", replace(SPRITES, draw=of_one_brightness)),
    ("Definition 3.3", "", "SHAPES3D", replace(SHAPES3D, draw=as_screens_show_it)),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, MUTATIONS)
