"Each proof check of the slot metrics goes red when the formula it stands for is broken."

import numpy as np
import torch
from mutations import Chapter, proof_tests

sm = Chapter("psa/06_slot_metrics", "psa.slot_alignment")


ORIGINAL = sm.names


def as_they_come(cost):
    return torch.arange(cost.shape[1]).expand(cost.shape[:2])


def aligned_from_raw_slots(a, b):
    order = sm.assign(sm.squared_distances(a, b))
    return sm.fit_affine(sm.reorder(a, order), b), sm.whitening(b.flatten(0, 1))


def kernel_of_the_text(a, b):
    return sm.slot_agreement(a, b)


def squared_correlations(predicted, target):
    return ORIGINAL["correlations"](predicted, target).square()


def undivided(n, held_out, seed):
    return torch.arange(n), torch.arange(n)


def own_only(explained):
    return explained.diag().mean().item()


def kernel_on_all_images(metric, slots, latents, n, **choices):
    if metric is sm.sis:
        choices |= {"predictor": "kernel"}
        return ORIGINAL["evaluations"](metric, slots, latents, 4 * n, **choices)
    return ORIGINAL["evaluations"](metric, slots, latents, n // 4, **choices)


def of_itself(norms):
    return ORIGINAL["pair_products"](norms) + norms.square().sum(1)


def total_squared(norms):
    return norms.sum(1).square() / 2


def means_of_trainings(a, b, scores):
    "The mean of the pairs that each training takes part in: the mean is right, the interval too narrow."
    takes_part = np.stack([(a == i) | (b == i) for i in np.unique(a)], 1)
    return scores @ takes_part / takes_part.sum(0)


BROKEN = [
    ("SMCC, permutation", "", "assign", as_they_come),
    ("SMCC, affine map", "", "align", aligned_from_raw_slots),
    ("SMCC, affine map", "", "slot_agreement", lambda a, b, **choices: ORIGINAL["slot_agreement"](a, a, **choices)),
    ("SMCC, order", "", "MATCHINGS", {**sm.MATCHINGS, "first": sm.match_alternating}),
    ("released SMCC", "", "kernel_agreement", kernel_of_the_text),
    ("slot R2", "", "correlations", squared_correlations),
    ("SMCC, chance", "", "halves", undivided),
    ("SIS", "", "own_over_other", own_only),
    ("Table 2, intervals", "", "pseudo_values", means_of_trainings),
    ("appendix F, stability", "", "evaluations", kernel_on_all_images),
    ("compositional contrast", "the sum", "pair_products", total_squared),
    ("compositional contrast, zero", "", "pair_products", of_itself),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(sm, BROKEN)
