"Each proof check of identifiability goes red when the formula it stands for is broken."

import copy

import torch
from mutations import Chapter, proof_tests
from torch import nn

from disentangle_repro.psa.aggregate_posterior import DiagonalMixture

chapter = Chapter("psa/04_identifiability")

ORIGINAL_LAW, ORIGINAL_DRAW, ORIGINAL_STRETCH = chapter.concatenated_slots, chapter.draw_slots, chapter.least_stretch
ORIGINAL_FIT, ORIGINAL_FOLD = chapter.fit_mixture, chapter.to_nearest_fold
ORIGINAL_ABSORB, ORIGINAL_IMAGE, ORIGINAL_MIX = chapter.absorb, chapter.affine_image, chapter.mixing_reflection
ORIGINAL_JACOBIANS, ORIGINAL_COUNT, ORIGINAL_MARGINAL = chapter.jacobians, chapter.count_preimages, chapter.slot_at


def one_order(means, variances):
    return DiagonalMixture(torch.ones(1).double(), means.flatten()[None], variances.flatten()[None])


def variances_in_order(means, variances):
    law = ORIGINAL_LAW(means, variances)
    return DiagonalMixture(law.weights, law.means, variances.flatten().expand_as(law.means))


def with_repetition(means, variances, n, generator):
    chosen = torch.randint(len(means), (n, len(means)), generator=generator)
    return means[chosen] + variances[chosen].sqrt() * torch.randn(n, *means.shape, generator=generator).double()


def without_a_leak(network, x):
    for layer in reversed(network):
        if isinstance(layer, nn.Linear):
            x = torch.linalg.lstsq(layer.weight, (x - layer.bias).mT).solution.mT
    return x


def shift_forgotten(network, matrix, shift):
    return ORIGINAL_ABSORB(network, matrix, torch.zeros_like(shift))


def covariances_kept(mixture, matrix, shift):
    image = ORIGINAL_IMAGE(mixture, matrix, shift).component_distribution.loc
    moved = DiagonalMixture(mixture.weights, image, mixture.variances)
    return ORIGINAL_IMAGE(moved, torch.eye(len(matrix)).double(), torch.zeros(len(matrix)))


def scalar_variances(means, variances, n, generator):
    return ORIGINAL_DRAW(means, variances.mean(1, keepdim=True).expand_as(variances), n, generator)


def one_noise_for_all_dimensions(means, variances, n, generator):
    orders = torch.rand(n, len(means), generator=generator).argsort(1)
    noise = torch.randn(n, len(means), 1, generator=generator).double()
    return means[orders] + variances[orders].sqrt() * noise


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
    ("Theorem 1", "K! normals", "concatenated_slots", variances_in_order),
    ("Theorem 1", "fall into cells", "draw_slots", with_repetition),
    ("Theorem 1", "fall into cells", "draw_slots", scalar_variances),
    ("Theorem 1", "fall into cells", "draw_slots", one_noise_for_all_dimensions),
    ("Theorem 1", "every position", "concatenated_slots", one_order),
    ("Theorem 1", "exchangeable starts", "fit_mixture", a_favourite_slot),
    ("Corollary 5", "is injective", "least_stretch", stretch_without_the_slope),
    ("Corollary 5", "is injective", "inverse", without_a_leak),
    ("Corollary 5", "counter-example", "lose_rank", rank_kept),
    ("Corollary 5", "counter-example", "least_stretch", lambda network: ORIGINAL_STRETCH(network) + 1e-6),
    ("Corollary 6", "", "to_nearest_fold", twice_as_far),
    ("Corollary 6", "", "to_nearest_fold", lambda network, z: ORIGINAL_FOLD(network, z) / 2),
    ("Corollary 6", "", "inverse", without_a_leak),
    ("Assumption 8", "", "count_preimages", lambda knots, x: ORIGINAL_COUNT(knots[:-1], x)),
    ("Assumption 8", "", "FUNCTIONS", chapter.FUNCTIONS | {"absolute value": chapter.FUNCTIONS["absolute value: not"]}),
    ("Theorem 2", "not weakly injective", "folded_log_prob", not_folded),
    ("Theorem 2", "absorbed", "absorb", absorbed_the_wrong_way),
    ("Theorem 2", "absorbed", "absorb", shift_forgotten),
    ("Theorem 2", "absorbed", "affine_image", covariances_kept),
    ("Theorem 2", "folded latents", "bent_log_prob", determinant_forgotten),
    ("Theorem 2", "many pieces", "to_nearest_fold", twice_as_far),
    ("Theorem 2", "many pieces", "jacobians", lambda network, z: ORIGINAL_JACOBIANS(network, z.flip(0))),
    ("Corollary 3", "", "concatenated_slots", one_order),
    ("Corollary 3", "", "affine_image", covariances_kept),
    ("Corollary 3", "", "slot_at", lambda law, place, dim: ORIGINAL_MARGINAL(law, 0, dim)),
    ("Definition 3", "", "mixing_reflection", swapped_slots),
    ("Definition 3", "", "mixing_reflection", lambda k, d: (ORIGINAL_MIX(k, d) + torch.eye(k * d)) / 2),
    ("Definition 3", "", "absorb", lambda network, matrix, shift: copy.deepcopy(network)),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, BROKEN)
