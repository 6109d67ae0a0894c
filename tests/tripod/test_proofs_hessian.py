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


def doubled_signs(n):
    return 2 * ORIGINAL["all_signs"](n)


def no_negative_signs(n):
    return ORIGINAL["all_signs"](n).abs()


def unbiased_variance(values):
    return ORIGINAL["variance"](values) * len(values) / (len(values) - 1)


def halved_form(hessian, vectors):
    return ORIGINAL["quadratic_form"](hessian, vectors) / 2


def not_contrasts(n_perturbations, like):
    return torch.eye(n_perturbations, dtype=like.dtype)[:-1]


def biased(contrasts):
    return ORIGINAL["curvature_variance"](contrasts) * contrasts.shape[1] / (contrasts.shape[1] + 1)


HESSIAN_PENALTY = [
    ("equation 7", "", "off_diagonal_sum", with_the_diagonal),
    ("equation 7", "", "hessians", lambda decoder, z: [2 * H for H in ORIGINAL["hessians"](decoder, z)]),
    ("equation 9", "exact for quadratics", "both_sides", one_side_only),
    ("equation 9", "exact for quadratics", "quadratic_form", halved_form),
    ("equation 9", "epsilon squared", "central_difference", forward_difference),
    ("equation 8", "n up to 6", "off_diagonal_sum", with_the_diagonal),
    ("equation 8", "n up to 6", "all_signs", doubled_signs),
    ("equation 8", "by symbol", "off_diagonal_sum", with_the_diagonal),
    ("equation 8", "by symbol", "variance", unbiased_variance),
    ("equation 9, variance", "squared length", "contrasts", not_contrasts),
    ("equation 9, variance", "middle term", "contrasts", not_contrasts),
    ("equation 9, variance", "middle term", "curvature_variance", biased),
    ("equation 8, few draws", "", "curvature_variance", biased),
    ("equation 8, few draws", "", "variance", unbiased_variance),
]


def squares_without_scales(hessian, scales):
    return ORIGINAL["squares"](hessian, scales**0)


def undivided(decoder, output, inputs):
    return lambda latents: output * decoder(latents * inputs)


def the_same_for_all(decoder, latents, scales, per_activation=False):
    return torch.tensor(0.5, dtype=torch.float64)


def unscaled_signs(scales):
    return ORIGINAL["scaled_signs"](scales**0)


def both_triangles(hessian, w):
    return [block + block for block in ORIGINAL["blocks"](hessian, w)]


def moment_of_signs(power, scale):
    return 0 if power % 2 else scale**power


def moments_with_odd_ones(power, scale):
    return (power + 1) * scale**power


def mean_of_products(one, other, scales):
    return ORIGINAL["expectation"](one * other, scales)


def unscaled_directions(latents, scales, n_perturbations, generator=None):
    return ORIGINAL["directions"](latents, scales**0, n_perturbations, generator)


def signs_for_both(latents, scales, n_perturbations, generator=None):
    drawn = ORIGINAL["directions"](latents, scales, n_perturbations, generator)
    return torch.stack([drawn[0], drawn[0].flip(1)])


def with_units(numerators, denominators, floor=0.0):
    return numerators / (denominators + 1e-3)


def a_ratio_for_each_layer(numerators, denominators, floors=0.0, protocol="paper"):
    return ORIGINAL["aggregate_layers"](numerators, denominators, floors, "code")


def one_ratio_for_all_layers(numerators, denominators, floors=0.0, protocol="paper"):
    return ORIGINAL["aggregate_layers"](numerators, denominators, floors, "paper")


def largest_activation(contrasts):
    return contrasts.square().sum(1).flatten(2).amax(2)


NORMALIZED = [
    ("Proposition 3.1", "by symbol", "rescaled", undivided),
    ("Proposition 3.1", "by symbol", "squares", squares_without_scales),
    ("Proposition 3.1", "by symbol", "off_diagonal_sum", with_the_diagonal),
    ("Proposition 3.1", "by autograd", "squares", squares_without_scales),
    ("Proposition 3.1", "by autograd", "off_diagonal_sum", with_the_diagonal),
    ("Proposition 3.1", "counter-example", "exact_penalty", the_same_for_all),
    ("A.2, the numerator", "less its expectation", "scaled_signs", unscaled_signs),
    ("A.2, the numerator", "less its expectation", "all_signs", no_negative_signs),
    ("A.2, the numerator", "4 sum over j > i", "variance", unbiased_variance),
    ("A.2, the numerator", "4 sum over j > i", "squares", squares_without_scales),
    ("A.2, the denominator", "T9", "blocks", both_triangles),
    ("A.2, the denominator", "T9", "covariance", mean_of_products),
    ("A.2, the denominator", "counter-example", "covariance", mean_of_products),
    ("A.2, the denominator", "with its square", "normal_moment", moments_with_odd_ones),
    ("A.2, the denominator", "misprints", "normal_moment", moment_of_signs),
    ("A.2, the denominator", "misprints", "squares", squares_without_scales),
    ("Proposition 3.2", "by symbol", "normal_moment", moment_of_signs),
    ("Proposition 3.2", "by symbol", "scaled_signs", unscaled_signs),
    ("Proposition 3.2", "by simulation", "directions", unscaled_directions),
    ("Proposition 3.2", "by simulation", "directions", signs_for_both),
    ("Algorithm 1, lines 14 to 24", "", "both_sides", one_side_only),
    ("Algorithm 1, lines 14 to 24", "", "curvature_variance", largest_activation),
    ("Algorithm 1, lines 14 to 24", "", "aggregate_layers", a_ratio_for_each_layer),
    ("Algorithm 1, lines 14 to 24", "", "aggregate_layers", one_ratio_for_all_layers),
    ("Algorithm 1, lines 14 to 24", "", "directions", unscaled_directions),
    ("equation 16", "within 2%", "directions", signs_for_both),
    ("equation 16", "within 2%", "curvature_variance", largest_activation),
    ("equation 16", "draw by draw", "directions", unscaled_directions),
    ("equation 16", "draw by draw", "ratio", with_units),
    ("section 3.4", "", "one_layer_each", lambda decoder: decoder),
    ("section 3.4", "", "directions", signs_for_both),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(hp, HESSIAN_PENALTY)
test_a_broken_normalised_formula_is_seen, test_no_normalised_check_is_left_unbroken = proof_tests(nhp, NORMALIZED)
