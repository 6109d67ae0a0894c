"Each proof check of DCI goes red when the formula it stands for is broken."

import numpy as np
from mutations import Chapter, proof_tests

dci = Chapter("scores/05_dci")

REPLACED = ("shares", "truncated_votes", "truncated_importance", "forest_by_depth")
ORIGINAL = {name: getattr(dci, name) for name in REPLACED}


def one_level_late(tree, n_depths):
    return np.roll(ORIGINAL["truncated_importance"](tree, n_depths), 1, axis=0)


def depths_reversed(forest, latents, source):
    accuracy, importance = ORIGINAL["forest_by_depth"](forest, latents, source)
    return accuracy, importance[::-1]


BROKEN = [
    ("qlae, appendix C.5, one tree for all depths", "", "truncated_importance", one_level_late),
    ("qlae, figure 7", "", "forest_by_depth", depths_reversed),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(dci, BROKEN)
