"Each proof check of the alignment of slots goes red when the formula it stands for is broken."

from itertools import cycle

import torch
from mutations import Chapter, proof_tests

sa = Chapter("psa/05_slot_alignment")


ORIGINAL = sa.names
FACTORS = cycle((0.8, 1.2))


def nearest_alone(cost):
    return cost.argmin(2)


def as_they_come(cost):
    return torch.arange(cost.shape[1]).expand(cost.shape[:2])


def dearest(cost):
    return ORIGINAL["assign"](-cost)


def without_offset(inputs, outputs):
    x, y = inputs.flatten(0, -2), outputs.flatten(0, -2)
    return sa.AffineMap(torch.linalg.lstsq(x, y).solution, y.new_zeros(y.shape[1]))


def half_way(inputs, outputs):
    matrix, _ = ORIGINAL["fit_affine"](inputs, outputs)
    x, y = inputs.flatten(0, -2), outputs.flatten(0, -2)
    return sa.AffineMap(matrix / 2, y.mean(0) - x.mean(0) @ matrix / 2)


def too_large_or_too_small(inputs, outputs):
    matrix, offset = ORIGINAL["fit_affine"](inputs, outputs)
    return sa.AffineMap(next(FACTORS) * matrix, offset)


def weighted_by_raw_length(slots):
    centred = slots - slots.mean((0, 1))
    return (centred * centred.norm(dim=2, keepdim=True)).mean(1)


def from_largest(a, b):
    return sa.fit_affine(a.amax(1), b.amax(1))


BROKEN = [
    ("SMCC, assignment", "", "every_order", nearest_alone),
    ("SMCC, assignment", "", "hungarian", dearest),
    ("SMCC, slot means", "", "fit_affine", without_offset),
    ("SMCC, slot means", "", "from_means", from_largest),
    ("SMCC, slot means", "", "weighted_means", weighted_by_raw_length),
    ("SMCC, alternation", "", "fit_affine", half_way),
    ("SMCC, alternation", "", "assign", as_they_come),
    ("SMCC, alternation", "", "assign", dearest),
    ("SMCC, alternation", "", "fit_affine", too_large_or_too_small),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(sa, BROKEN)
