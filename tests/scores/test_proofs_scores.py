"Each proof check of DCI goes red when the formula it stands for is broken."

import numpy as np
from mutations import Chapter, proof_tests

dci = Chapter("scores/02_dci")

ORIGINAL = {name: getattr(dci, name) for name in ("shares", "spread", "truncated_votes", "forest_by_depth")}
ORIGINAL_IMPORTANCE = dci.truncated_importance


def entropy_in_nats(weights, axis):
    return ORIGINAL["spread"](weights, axis) * np.log(weights.shape[axis])


def base_too_large(weights, axis):
    n = weights.shape[axis]
    return ORIGINAL["spread"](weights, axis) * np.log(n) / np.log(n + 1)


def smoothed(weights, axis, empty=0.0):
    return ORIGINAL["shares"](weights + 1e-3, axis, empty)


def first_latent_only(importance):
    return float(1 - ORIGINAL["spread"](np.asarray(importance), axis=1)[0])


def unweighted(importance):
    return float(1 - ORIGINAL["spread"](np.asarray(importance), axis=1).mean())


def weighted_by_importance(importance):
    relevance = importance.sum(axis=0) / importance.sum()
    return float(1 - relevance @ ORIGINAL["spread"](importance, axis=0))


def worst_source(importance):
    return float(1 - ORIGINAL["spread"](np.asarray(importance), axis=0).max())


def rows_for_columns(importance):
    return dci.disentanglement(importance)


def always_left(tree, latents, n_depths):
    return ORIGINAL["truncated_votes"](tree, np.full_like(latents, -np.inf), n_depths)


def one_level_late(tree, n_depths):
    return np.roll(ORIGINAL_IMPORTANCE(tree, n_depths), 1, axis=0)


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


SECTION_2 = "Eastwood & Williams 2018, section 2, "
BROKEN = [
    (SECTION_2 + "range", "", "spread", entropy_in_nats),
    (SECTION_2 + "ends", "", "spread", base_too_large),
    (SECTION_2 + "ends", "", "shares", smoothed),
    (SECTION_2 + "invariance", "", "disentanglement", first_latent_only),
    (SECTION_2 + "invariance", "", "completeness", weighted_by_importance),
    (SECTION_2 + "invariance", "", "shares", smoothed),
    (SECTION_2 + "weights", "", "disentanglement", unweighted),
    (SECTION_2 + "duplicates", "", "disentanglement", unweighted),
    (SECTION_2 + "duplicates", "", "completeness", rows_for_columns),
    ("factorqvae, section 3.3.2", "", "disentanglement", unweighted),
    ("factorqvae, section 3.3.2", "", "completeness", rows_for_columns),
    ("factorqvae, section 3.3.1", "", "completeness", worst_source),
    ("qlae, appendix C.5, one tree for all depths", "", "truncated_votes", always_left),
    ("qlae, appendix C.5, one tree for all depths", "", "truncated_importance", one_level_late),
    ("qlae, appendix C.5, one tree for all depths", "", "truncated_importance", splits_counted),
    ("qlae, figure 7", "", "forest_by_depth", depths_reversed),
    ("qlae, figure 7", "", "forest_by_depth", always_as_accurate),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(dci, BROKEN)
