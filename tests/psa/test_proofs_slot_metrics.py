"Each proof check of the slot metrics goes red when the formula it stands for is broken."

import numpy as np
import torch
from mutations import Chapter, proof_tests

sm = Chapter("psa/06_slot_metrics", "psa.slot_alignment")


ORIGINAL = sm.names


def as_they_come(cost):
    return torch.arange(cost.shape[1]).expand(cost.shape[:2])


def half_way(inputs, outputs):
    matrix, _ = ORIGINAL["fit_affine"](inputs, outputs)
    x, y = inputs.flatten(0, -2), outputs.flatten(0, -2)
    return sm.AffineMap(matrix / 2, y.mean(0) - x.mean(0) @ matrix / 2)


def by_number(a, b):
    places = torch.arange(float(a.shape[1]))
    return (places[: b.shape[1], None] - places).abs().expand(len(a), -1, -1)


def aligned_from_raw_slots(a, b):
    order = sm.assign(sm.squared_distances(a, b))
    return sm.fit_affine(sm.reorder(a, order), b), sm.whitening(b.flatten(0, 1))


def aligned_from_means_only(a, b):
    metric = sm.whitening(b.flatten(0, 1))
    affine = sm.alternate(a, b @ metric, sm.from_means(a, b @ metric)).affine
    order = sm.assign(sm.squared_distances(affine(a), b @ metric))
    return sm.fit_affine(sm.reorder(a, order), b), metric


def scored_as_they_come(a, b, fit, score):
    affine, _ = sm.align(a[fit], b[fit])
    return affine(a[score]), b[score]


def kernel_of_the_text(a, b):
    return sm.slot_agreement(a, b)


def matched_by_number(a, b):
    scores = [sm.slot_agreement(a[:, [k]], b[:, [k]], protocol="pooled") for k in range(b.shape[1])]
    return sm.SlotAgreement(*np.mean(scores, axis=0).tolist())


def squared_correlations(predicted, target):
    return ORIGINAL["correlations"](predicted, target).square()


def mean_error_of_all_images(predicted, target):
    return 1 - (target - predicted).square().mean(0)


def undivided(n, held_out, seed):
    return torch.arange(n), torch.arange(n)


def own_only(explained):
    return explained.diag().mean().item()


def best_of_rows(explained):
    return explained.amax(1).mean().item()


def steady(slots, latents, *, seed=0, **choices):
    return 0.5 + 0.0001 * seed


def kernel_on_all_images(metric, slots, latents, n, **choices):
    if metric is sm.sis:
        choices |= {"predictor": "kernel"}
        return ORIGINAL["evaluations"](metric, slots, latents, 4 * n, **choices)
    return ORIGINAL["evaluations"](metric, slots, latents, n // 4, **choices)


def of_itself(norms):
    return ORIGINAL["pair_products"](norms) + norms.square().sum(1)


def total_squared(norms):
    return norms.sum(1).square() / 2


def absolute_values(decoder, slots, chunk=16):
    jacobian = [torch.autograd.functional.jacobian(lambda z: decoder(z[None])[0].flatten(), s) for s in slots]
    return torch.stack(jacobian).abs().sum(3).transpose(1, 2)


def summed_over_pixels_first(norms, protocol="paper"):
    return sm.pair_products(norms.sum(2, keepdim=True)).sum(1)


def paired_twice(norms, protocol="paper"):
    return 2 * ORIGINAL["contrast"](norms, protocol)


def after_a_softmax(slots):
    return slots.softmax(1)


def pairs_as_seeds(a, b, scores):
    return scores


def means_of_trainings(a, b, scores):
    "The mean of the pairs that each training takes part in: the mean is right, the interval too narrow."
    takes_part = np.stack([(a == i) | (b == i) for i in np.unique(a)], 1)
    return scores @ takes_part / takes_part.sum(0)


def trainings_of_two_kinds(rng, repeats, n):
    "The second half of the models is better than the first: they are not identical."
    better = np.repeat([0.0, 5.0], repeats // 2)[:, None, None]
    return better + rng.normal(size=(repeats, n, n))


BROKEN = [
    ("SMCC, permutation", "", "assign", as_they_come),
    ("SMCC, permutation", "", "squared_distances", by_number),
    ("SMCC, affine map", "", "align", aligned_from_raw_slots),
    ("SMCC, affine map", "", "align", aligned_from_means_only),
    ("SMCC, affine map", "", "MATCHINGS", {**sm.MATCHINGS, "alternating": scored_as_they_come}),
    ("SMCC, order", "", "MATCHINGS", {**sm.MATCHINGS, "first": sm.match_alternating}),
    ("SMCC, order", "", "MATCHINGS", {**sm.MATCHINGS, "alternating": sm.match_first}),
    ("released SMCC", "", "kernel_agreement", kernel_of_the_text),
    ("released SMCC", "", "kernel_agreement", matched_by_number),
    ("released SMCC", "", "assign", as_they_come),
    ("slot R2", "", "correlations", squared_correlations),
    ("slot R2", "", "determination", mean_error_of_all_images),
    ("slot R2", "", "fit_affine", half_way),
    ("SMCC, chance", "", "halves", undivided),
    ("SIS", "", "own_over_other", own_only),
    ("SIS", "", "own_over_other", best_of_rows),
    ("SIS", "", "assign", as_they_come),
    ("Table 2, intervals", "", "pseudo_values", pairs_as_seeds),
    ("Table 2, intervals", "", "pseudo_values", means_of_trainings),
    ("Table 2, intervals", "", "PAIRINGS", {name: trainings_of_two_kinds for name in sm.PAIRINGS}),
    ("appendix F, stability", "", "sis", steady),
    ("appendix F, stability", "", "evaluations", kernel_on_all_images),
    ("compositional contrast", "the sum", "pair_products", total_squared),
    ("compositional contrast", "the sum", "derivative_norms", absolute_values),
    ("compositional contrast", "the sum", "contrast", summed_over_pixels_first),
    ("compositional contrast", "the sum", "contrast", paired_twice),
    ("compositional contrast, zero", "", "pair_products", of_itself),
    ("compositional contrast, zero", "", "disjoint", after_a_softmax),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(sm, BROKEN)
