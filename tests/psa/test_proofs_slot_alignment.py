"Each proof check of the alignment of slots goes red when the formula it stands for is broken."

from mutations import Chapter, proof_tests

sa = Chapter("psa/05_slot_alignment")


ORIGINAL = sa.names


def nearest_alone(cost):
    return cost.argmin(2)


def dearest(cost):
    return ORIGINAL["assign"](-cost)


def from_largest(a, b):
    return sa.fit_affine(a.amax(1), b.amax(1))


def without_an_offset(inputs, outputs):
    affine = ORIGINAL["fit_affine"](inputs, outputs)
    return affine._replace(offset=0 * affine.offset)


BROKEN = [
    ("SMCC, assignment", "", "every_order", nearest_alone),
    ("SMCC, slot means", "", "from_means", from_largest),
    ("SMCC, alternation", "", "assign", dearest),
    ("SMCC, alternation", "", "fit_affine", without_an_offset),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(sa, BROKEN)
