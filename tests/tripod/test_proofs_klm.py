"Each proof check of kernel multi-information goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

klm = Chapter("tripod/02_kernel_multiinformation")

aggregate, penalty = klm.aggregate_log_densities, klm.kernel_multiinformation
at, silverman, latent_scales = klm.multiinformation_at, klm.silverman, klm.latent_scales
endless_normal = klm.endless_normal


def without_the_batch_size(z, mean, scale):
    together, alone = aggregate(z, mean, scale)
    size = torch.tensor(len(mean)).log()
    return together + size, alone + size


def of_the_average_latent(z, mean, scale):
    together, alone = aggregate(z, mean, scale)
    return together / z.shape[1], alone


def not_divided(latents, scales):
    return latents - latents.mean(0)


def constant_scales(continuous, protocol="paper"):
    return latent_scales(continuous, protocol).detach()


def own_scales_whatever_comes(latents, scales=None, *, protocol="paper"):
    return penalty(latents)


def turned_round(latents, scales=None, *, protocol="paper"):
    return -penalty(latents, scales)


def without_the_determinant(correlations, width):
    return endless_normal(torch.eye(len(correlations)).to(correlations), width)


def independent(z, mean, scale):
    _, alone = aggregate(z, mean, scale)
    return alone.sum(1), alone


def not_shuffled(latents, generator):
    return latents


BROKEN = [
    ("equation 5", "full grid", "aggregate_log_densities", without_the_batch_size),
    ("equation 5", "full grid", "aggregate_log_densities", independent),
    ("equations 11 to 14", "", "aggregate_log_densities", without_the_batch_size),
    ("equations 11 to 14", "", "silverman", lambda scales, n: silverman(scales, n) ** 2 / scales),
    ("equations 11 to 14", "", "silverman", lambda scales, n: n ** (-1 / (len(scales) + 4)) * scales),
    ("equations 11 to 14", "", "standardized", lambda z, scales: (z - z.mean(0)) / scales.square()),
    ("equations 11 to 14", "", "multiinformation_at", lambda z, joint, alone: at(z[: len(z) // 2], joint, alone)),
    ("equations 11 to 14", "", "kernel_multiinformation", own_scales_whatever_comes),
    ("equation 12", "rescaling latents", "standardized", not_divided),
    ("equation 12", "gradient", "latent_scales", constant_scales),
    ("equation 12", "fixed smoothing", "kernel_multiinformation", own_scales_whatever_comes),
    ("equations 12 and 13", "limit", "endless_normal", without_the_determinant),
    ("equations 12 and 13", "limit", "endless_normal", lambda r, width: endless_normal(r, width) - 0.0966 * len(r)),
    ("equations 12 and 13", "limit", "kernel_multiinformation", lambda latents, scales=None: 2 * penalty(latents)),
    ("equations 12 and 13", "2,048", "endless_normal", without_the_determinant),
    ("equations 12 and 13", "sum over its latents", "aggregate_log_densities", of_the_average_latent),
    ("equation 14", "", "aggregate_log_densities", of_the_average_latent),
    ("section 3.2", "grows", "kernel_multiinformation", turned_round),
    ("section 3.2", "gap", "shuffled", not_shuffled),
    ("section 3.2", "gap", "aggregate_log_densities", independent),
    ("figure 3", "", "kernel_multiinformation", turned_round),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(klm, BROKEN)
