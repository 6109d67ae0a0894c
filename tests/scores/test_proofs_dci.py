"Each proof check of DCI goes red when the formula it stands for is broken."

import numpy as np
from mutations import Chapter, proof_tests

dci = Chapter("scores/05_dci")

REPLACED = ("shares", "truncated_votes", "truncated_importance", "forest_by_depth")
ORIGINAL = {name: getattr(dci, name) for name in REPLACED}


def always_left(tree, latents, n_depths):
    return ORIGINAL["truncated_votes"](tree, np.full_like(latents, -np.inf), n_depths)


def one_level_late(tree, n_depths):
    return np.roll(ORIGINAL["truncated_importance"](tree, n_depths), 1, axis=0)


def splits_counted(tree, n_depths):
    counts = np.zeros((n_depths, tree.n_features))
    split = np.flatnonzero(tree.children_left >= 0)
    np.add.at(counts, (tree.compute_node_depths()[split] - 1, tree.feature[split]), 1)
    return ORIGINAL["shares"](counts.cumsum(axis=0), axis=1)


def depths_reversed(forest, latents, source):
    accuracy, importance = ORIGINAL["forest_by_depth"](forest, latents, source)
    return accuracy, importance[::-1]


def always_as_accurate(forest, latents, source):
    accuracy, importance = ORIGINAL["forest_by_depth"](forest, latents, source)
    return np.full_like(accuracy, accuracy.max()) + 1e-9 * np.arange(len(accuracy)), importance


BROKEN = [
    ("qlae, appendix C.5, one tree for all depths", "", "truncated_votes", always_left),
    ("qlae, appendix C.5, one tree for all depths", "", "truncated_importance", one_level_late),
    ("qlae, appendix C.5, one tree for all depths", "", "truncated_importance", splits_counted),
    ("qlae, figure 7", "", "forest_by_depth", depths_reversed),
    ("qlae, figure 7", "", "forest_by_depth", always_as_accurate),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(dci, BROKEN)
