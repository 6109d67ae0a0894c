"Each proof check of the two Hessian penalties goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

hp = Chapter("tripod/03_hessian_penalty")
nhp = Chapter("tripod/04_normalized_hessian_penalty")


ORIGINAL = nhp.names | hp.names


def with_the_diagonal(hessian):
    return (hessian**2).sum((-2, -1))


def one_side_only(latents, steps):
    return torch.cat([latents + steps, latents + steps], dim=-3).flatten(0, -2)


def forward_difference(decoder, latents, directions, epsilon):
    steps = epsilon * directions
    one, two = (decoder((latents + m * steps).flatten(0, 1)).unflatten(0, steps.shape[:2]) for m in (1, 2))
    return (two - 2 * one + decoder(latents)) / epsilon**2


def not_contrasts(n_perturbations, like):
    return torch.eye(n_perturbations, dtype=like.dtype)[:-1]


def biased(contrasts):
    return ORIGINAL["curvature_variance"](contrasts) * contrasts.shape[1] / (contrasts.shape[1] + 1)


HESSIAN_PENALTY = [
    ("equation 7", "", "hessians", lambda decoder, z: [2 * H for H in ORIGINAL["hessians"](decoder, z)]),
    ("equation 9", "exact for quadratics", "both_sides", one_side_only),
    ("equation 9", "epsilon squared", "central_difference", forward_difference),
    ("equation 8", "n up to 6", "off_diagonal_sum", with_the_diagonal),
    ("equation 8", "by symbol", "off_diagonal_sum", with_the_diagonal),
    ("equation 9, variance", "squared length", "contrasts", not_contrasts),
    ("equation 9, variance", "middle term", "contrasts", not_contrasts),
    ("equation 9, variance", "middle term", "both_sides", lambda z, steps: ORIGINAL["both_sides"](z, 2 * steps)),
    ("equation 8, few draws", "", "curvature_variance", biased),
]


def squares_without_scales(hessian, scales):
    return ORIGINAL["squares"](hessian, scales**0)


def the_same_for_all(decoder, latents, scales, per_activation=False):
    return torch.tensor(0.5, dtype=torch.float64)


def unscaled_signs(scales):
    return ORIGINAL["scaled_signs"](scales**0)


def moments_with_odd_ones(power, scale):
    return (power + 1) * scale**power


def mean_of_products(one, other, scales):
    return ORIGINAL["expectation"](one * other, scales)


def unscaled_directions(latents, scales, n_perturbations, generator=None):
    return ORIGINAL["directions"](latents, scales**0, n_perturbations, generator)


def largest_activation(contrasts):
    return contrasts.square().sum(1).flatten(2).amax(2)


NORMALIZED = [
    ("Proposition 3.1", "by symbol", "squares", squares_without_scales),
    ("Proposition 3.1", "by autograd", "squares", squares_without_scales),
    ("Proposition 3.1", "by autograd", "squares", lambda H, scales: ORIGINAL["squares"](H, scales)[::-1]),
    ("Proposition 3.1", "counter-example", "exact_penalty", the_same_for_all),
    ("A.2, the numerator", "less its expectation", "scaled_signs", unscaled_signs),
    ("A.2, the numerator", "4 sum over j > i", "squares", squares_without_scales),
    ("A.2, the denominator", "T9", "covariance", mean_of_products),
    ("A.2, the denominator", "counter-example", "covariance", mean_of_products),
    ("A.2, the denominator", "with its square", "normal_moment", moments_with_odd_ones),
    ("A.2, the denominator", "misprints", "squares", squares_without_scales),
    ("Proposition 3.2", "by symbol", "scaled_signs", unscaled_signs),
    ("Proposition 3.2", "by simulation", "directions", unscaled_directions),
    ("Algorithm 1, lines 14 to 24", "", "curvature_variance", largest_activation),
    ("equation 16", "within 2%", "curvature_variance", largest_activation),
    ("equation 16", "draw by draw", "directions", unscaled_directions),
    ("section 3.4", "", "one_layer_each", lambda decoder: decoder),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(hp, HESSIAN_PENALTY)
test_a_broken_normalised_formula_is_seen, test_no_normalised_check_is_left_unbroken = proof_tests(nhp, NORMALIZED)
