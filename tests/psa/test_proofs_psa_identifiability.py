"Each proof check of identifiability goes red when the formula it stands for is broken."

import copy
import math

import torch
from mutations import Chapter, proof_tests
from torch import nn

from disentangle_repro.psa.aggregate_posterior import DiagonalMixture

chapter = Chapter("psa/04_identifiability")

ORIGINAL_LAW, ORIGINAL_DRAW, ORIGINAL_STRETCH = chapter.concatenated_slots, chapter.draw_slots, chapter.least_stretch
ORIGINAL_FIT, ORIGINAL_FOLD = chapter.fit_mixture, chapter.to_nearest_fold
ORIGINAL_ABSORB, ORIGINAL_IMAGE = chapter.absorb, chapter.affine_image
ORIGINAL_NETWORK, ORIGINAL_JACOBIANS = chapter.leaky_network, chapter.jacobians
ORIGINAL_BENT, ORIGINAL_MIX = chapter.bent_log_prob, chapter.mixing_reflection


def one_order(means, variances):
    return DiagonalMixture(torch.ones(1).double(), means.flatten()[None], variances.flatten()[None])


def variances_in_order(means, variances):
    law = ORIGINAL_LAW(means, variances)
    return DiagonalMixture(law.weights, law.means, variances.flatten().expand_as(law.means))


def variances_for_means(means, variances):
    return ORIGINAL_LAW(variances, variances)


def rotations_only(means, variances, n, generator):
    slots = ORIGINAL_DRAW(means, variances, n, generator)
    turned = torch.arange(n) % 3
    ordered = means + (variances.sqrt() * torch.randn(n, *means.shape, generator=generator, dtype=means.dtype))
    index = (torch.arange(3) + turned[:, None]) % 3
    return ordered.take_along_dim(index[:, :, None], 1).to(slots)


def with_repetition(means, variances, n, generator):
    chosen = torch.randint(len(means), (n, len(means)), generator=generator)
    noise = torch.randn(n, *means.shape, generator=generator, dtype=means.dtype)
    return means[chosen] + variances[chosen].sqrt() * noise


def twice_the_spread(means, variances, n, generator):
    return ORIGINAL_DRAW(means, 2 * variances, n, generator)


def slots_in_order(features, start, iterations):
    found = ORIGINAL_FIT(features, start, iterations)
    return found._replace(mean=found.mean.sort(1).values)


def a_favourite_slot(features, start, iterations):
    return ORIGINAL_FIT(features, start._replace(mean=start.mean + torch.tensor([[0.3], [0.0], [0.0]])), iterations)


def largest_stretch(network):
    layers = [layer.weight for layer in network if isinstance(layer, nn.Linear)]
    return math.prod(torch.linalg.svdvals(weight)[0].item() for weight in layers)


def stretch_without_the_slope(network):
    return ORIGINAL_STRETCH(network) / 0.01 ** (len(network) // 2)


def without_folds(widths, generator, slope=0.01):
    return ORIGINAL_NETWORK(widths, generator, 1.0)


def jacobians_elsewhere(network, z):
    return ORIGINAL_JACOBIANS(network, z.flip(0))


def never_zero(network):
    return ORIGINAL_STRETCH(network) + 1e-6


def inverse_of_affine_layers_only(network, x):
    for layer in reversed(network):
        if isinstance(layer, nn.Linear):
            x = torch.linalg.lstsq(layer.weight, (x - layer.bias).mT).solution.mT
    return x


def rank_kept(network, layer):
    return copy.deepcopy(network)


def twice_as_far(network, z):
    return 2 * ORIGINAL_FOLD(network, z)


def half_as_far(network, z):
    return ORIGINAL_FOLD(network, z) / 2


def nearest_fold_of_the_first_layer(network, z):
    return ORIGINAL_FOLD(network[:2], z)


def not_folded(mixture, x):
    return mixture.log_prob(x[:, None])


def absorbed_the_wrong_way(network, matrix, shift):
    return ORIGINAL_ABSORB(network, matrix.inverse(), shift)


def nothing_absorbed(network, matrix, shift):
    return copy.deepcopy(network)


def shift_forgotten(network, matrix, shift):
    return ORIGINAL_ABSORB(network, matrix, torch.zeros_like(shift))


def covariances_kept(mixture, matrix, shift):
    return ORIGINAL_IMAGE(
        DiagonalMixture(mixture.weights, mixture.means @ matrix.T, mixture.variances), torch.eye(2).double(), shift
    )


def determinant_forgotten(bend, mixture, y):
    return mixture.log_prob(bend.unbend(y))


class Straight(chapter.Bend):
    def bend(self, z):
        return z

    unbend = bend

    def determinant(self, y):
        return torch.ones_like(y[..., 0])


class UnbentTooFar(chapter.Bend):
    def unbend(self, y):
        return y - (y @ self.normal).abs()[..., None] * self.direction


def bent_image(mixture, matrix, shift):
    normal = torch.tensor([1.0, 0.0]).double()
    bend = chapter.Bend(normal, 0.5 * normal)

    class Law:
        def log_prob(self, y):
            return ORIGINAL_BENT(bend, mixture, y)

    return Law()


def swapped_slots(slots, dim):
    return torch.kron(torch.eye(slots).flip(0), torch.eye(dim)).double()


def once_the_mean(slots, dim):
    return (ORIGINAL_MIX(slots, dim) + torch.eye(slots * dim)) / 2


BROKEN = [
    ("Theorem 1", "K! normals", "concatenated_slots", one_order),
    ("Theorem 1", "K! normals", "concatenated_slots", variances_in_order),
    ("Theorem 1", "fall into cells", "draw_slots", rotations_only),
    ("Theorem 1", "fall into cells", "draw_slots", with_repetition),
    ("Theorem 1", "fall into cells", "draw_slots", twice_the_spread),
    ("Theorem 1", "fall into cells", "concatenated_slots", variances_in_order),
    ("Theorem 1", "every position", "concatenated_slots", one_order),
    ("Theorem 1", "every position", "concatenated_slots", variances_in_order),
    ("Theorem 1", "exchangeable starts", "fit_mixture", slots_in_order),
    ("Theorem 1", "exchangeable starts", "fit_mixture", a_favourite_slot),
    ("Corollary 5", "is injective", "least_stretch", largest_stretch),
    ("Corollary 5", "is injective", "least_stretch", stretch_without_the_slope),
    ("Corollary 5", "is injective", "inverse", inverse_of_affine_layers_only),
    ("Corollary 5", "counter-example", "lose_rank", rank_kept),
    ("Corollary 5", "counter-example", "least_stretch", never_zero),
    ("Corollary 5", "counter-example", "inverse", inverse_of_affine_layers_only),
    ("Corollary 6", "", "to_nearest_fold", twice_as_far),
    ("Corollary 6", "", "to_nearest_fold", half_as_far),
    ("Corollary 6", "", "to_nearest_fold", nearest_fold_of_the_first_layer),
    ("Corollary 6", "", "inverse", inverse_of_affine_layers_only),
    ("Theorem 2", "not weakly injective", "folded_log_prob", not_folded),
    ("Theorem 2", "absorbed", "absorb", absorbed_the_wrong_way),
    ("Theorem 2", "absorbed", "absorb", shift_forgotten),
    ("Theorem 2", "absorbed", "affine_image", covariances_kept),
    ("Theorem 2", "absorbed", "inverse", inverse_of_affine_layers_only),
    ("Theorem 2", "folded latents", "bent_log_prob", determinant_forgotten),
    ("Theorem 2", "folded latents", "Bend", Straight),
    ("Theorem 2", "folded latents", "Bend", UnbentTooFar),
    ("Theorem 2", "folded latents", "affine_image", bent_image),
    ("Theorem 2", "many pieces", "to_nearest_fold", half_as_far),
    ("Theorem 2", "many pieces", "to_nearest_fold", twice_as_far),
    ("Theorem 2", "many pieces", "inverse", inverse_of_affine_layers_only),
    ("Theorem 2", "many pieces", "leaky_network", without_folds),
    ("Theorem 2", "many pieces", "jacobians", jacobians_elsewhere),
    ("Definition 3", "", "mixing_reflection", swapped_slots),
    ("Definition 3", "", "mixing_reflection", once_the_mean),
    ("Definition 3", "", "concatenated_slots", variances_for_means),
    ("Definition 3", "", "absorb", nothing_absorbed),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, BROKEN)
