"Each proof check of identifiability goes red when the formula it stands for is broken."

import copy

import torch
from mutations import Chapter, proof_tests

from disentangle_repro.psa.aggregate_posterior import DiagonalMixture

chapter = Chapter("psa/04_identifiability")

ORIGINAL_DRAW, ORIGINAL_STRETCH = chapter.draw_slots, chapter.least_stretch
ORIGINAL_FIT, ORIGINAL_FOLD = chapter.fit_mixture, chapter.to_nearest_fold
ORIGINAL_ABSORB = chapter.absorb


def one_order(means, variances):
    return DiagonalMixture(torch.ones(1).double(), means.flatten()[None], variances.flatten()[None])


def twice_the_spread(means, variances, n, generator):
    return ORIGINAL_DRAW(means, 2 * variances, n, generator)


def a_favourite_slot(features, start, iterations):
    return ORIGINAL_FIT(features, start._replace(mean=start.mean + torch.tensor([[0.3], [0.0], [0.0]])), iterations)


def stretch_without_the_slope(network):
    return ORIGINAL_STRETCH(network) / 0.01 ** (len(network) // 2)


def rank_kept(network, layer):
    return copy.deepcopy(network)


def twice_as_far(network, z):
    return 2 * ORIGINAL_FOLD(network, z)


def not_folded(mixture, x):
    return mixture.log_prob(x[:, None])


def absorbed_the_wrong_way(network, matrix, shift):
    return ORIGINAL_ABSORB(network, matrix.inverse(), shift)


def determinant_forgotten(bend, mixture, y):
    return mixture.log_prob(bend.unbend(y))


def swapped_slots(slots, dim):
    return torch.kron(torch.eye(slots).flip(0), torch.eye(dim)).double()


BROKEN = [
    ("Theorem 1", "K! normals", "concatenated_slots", one_order),
    ("Theorem 1", "fall into cells", "draw_slots", twice_the_spread),
    ("Theorem 1", "every position", "concatenated_slots", one_order),
    ("Theorem 1", "exchangeable starts", "fit_mixture", a_favourite_slot),
    ("Corollary 5", "is injective", "least_stretch", stretch_without_the_slope),
    ("Corollary 5", "counter-example", "lose_rank", rank_kept),
    ("Corollary 6", "", "to_nearest_fold", twice_as_far),
    ("Theorem 2", "not weakly injective", "folded_log_prob", not_folded),
    ("Theorem 2", "absorbed", "absorb", absorbed_the_wrong_way),
    ("Theorem 2", "folded latents", "bent_log_prob", determinant_forgotten),
    ("Theorem 2", "many pieces", "to_nearest_fold", twice_as_far),
    ("Definition 3", "", "mixing_reflection", swapped_slots),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, BROKEN)
