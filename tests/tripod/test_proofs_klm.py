"Each proof check of kernel multi-information goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

from disentangle_repro.baselines.variational import log_density

klm = Chapter("tripod/02_kernel_multiinformation")

aggregate, penalty, silverman = klm.aggregate_log_densities, klm.kernel_multiinformation, klm.silverman
at, standardized, latent_scales = klm.multiinformation_at, klm.standardized, klm.latent_scales
endless_normal, descend = klm.endless_normal, klm.descend


def without_the_batch_size(z, mean, scale):
    together, alone = aggregate(z, mean, scale)
    size = torch.tensor(len(mean)).log()
    return together + size, alone + size


def without_itself(z, mean, scale):
    each = log_density(z[:, None], mean, scale)
    hidden = torch.eye(len(z)).bool()
    together = each.sum(2).masked_fill(hidden, -torch.inf).logsumexp(1)
    alone = each.masked_fill(hidden[:, :, None], -torch.inf).logsumexp(1)
    size = torch.tensor(len(z) - 1).log()
    return together - size, alone - size


def of_the_average_latent(z, mean, scale):
    together, alone = aggregate(z, mean, scale)
    return together / z.shape[1], alone


def independent_whatever_comes(z, mean, scale):
    _, alone = aggregate(z, mean, scale)
    return alone.sum(1), alone


def in_order_of_the_latents(latents, joint, alone):
    return at(latents * torch.arange(1, latents.shape[1] + 1), joint, alone)


def of_the_first_samples(latents, joint, alone):
    return at(latents[: len(latents) // 2], joint, alone)


def squares_for_roots(scales, n_samples):
    return silverman(scales, n_samples) ** 2 / scales


def scott(scales, n_samples):
    return n_samples ** (-1 / (len(scales) + 4)) * scales


def the_marginals_width(scales, n_samples):
    return scales


def not_divided(latents, scales):
    return latents - latents.mean(0)


def divided_by_variances(latents, scales):
    return (latents - latents.mean(0)) / scales.square()


def constant_scales(continuous, protocol="paper"):
    return latent_scales(continuous, protocol).detach()


def rather_few_digits(latents, scales=None, *, protocol="paper"):
    scales = latents.std(0) if scales is None else scales
    return at(latents, silverman(scales, len(latents)), scales)


def own_scales_whatever_comes(latents, scales=None, *, protocol="paper"):
    return penalty(latents)


def without_a_gradient(latents, scales=None, *, protocol="paper"):
    return penalty(latents, scales).detach() + 0 * latents.sum()


def always_one_scale(latents, scales=None, *, protocol="paper"):
    return penalty(latents, torch.ones_like(latents[0]))


def turned_round(latents, scales=None, *, protocol="paper"):
    return -penalty(latents, scales)


def without_the_determinant(correlations, width):
    return endless_normal(torch.eye(len(correlations)).to(correlations), width)


def without_the_blur(correlations, width):
    return endless_normal(correlations, width) - 0.0966 * len(correlations)


def not_shuffled(latents, generator):
    return latents


def constant_columns(latents, generator):
    return latents.mean(0).expand_as(latents)


def stays(latents, updates=100, rate=4.0):
    return latents


def whitened_and_stretched(latents, updates=100, rate=4.0):
    return 2 * descend(latents, updates, rate)


BROKEN = [
    ("equation 5", "full grid", "aggregate_log_densities", without_the_batch_size),
    ("equation 5", "full grid", "aggregate_log_densities", without_itself),
    ("equation 5", "full grid", "aggregate_log_densities", independent_whatever_comes),
    ("equations 11 to 14", "", "aggregate_log_densities", without_the_batch_size),
    ("equations 11 to 14", "", "silverman", squares_for_roots),
    ("equations 11 to 14", "", "silverman", scott),
    ("equations 11 to 14", "", "silverman", the_marginals_width),
    ("equations 11 to 14", "", "standardized", divided_by_variances),
    ("equations 11 to 14", "", "multiinformation_at", in_order_of_the_latents),
    ("equations 11 to 14", "", "multiinformation_at", of_the_first_samples),
    ("equations 11 to 14", "", "kernel_multiinformation", own_scales_whatever_comes),
    ("equation 12", "rescaling latents", "standardized", not_divided),
    ("equation 12", "rescaling latents", "kernel_multiinformation", rather_few_digits),
    ("equation 12", "rescaling latents", "kernel_multiinformation", always_one_scale),
    ("equation 12", "gradient", "latent_scales", constant_scales),
    ("equation 12", "gradient", "kernel_multiinformation", without_a_gradient),
    ("equation 12", "fixed smoothing", "kernel_multiinformation", always_one_scale),
    ("equation 12", "fixed smoothing", "kernel_multiinformation", own_scales_whatever_comes),
    ("equation 12", "fixed smoothing", "shuffled", not_shuffled),
    ("equations 12 and 13", "limit", "endless_normal", without_the_determinant),
    ("equations 12 and 13", "limit", "endless_normal", without_the_blur),
    ("equations 12 and 13", "2,048", "endless_normal", without_the_determinant),
    ("equations 12 and 13", "2,048", "aggregate_log_densities", independent_whatever_comes),
    ("equations 12 and 13", "sum over its latents", "aggregate_log_densities", of_the_average_latent),
    ("equations 12 and 13", "sum over its latents", "silverman", the_marginals_width),
    ("equation 14", "", "aggregate_log_densities", without_itself),
    ("equation 14", "", "aggregate_log_densities", of_the_average_latent),
    ("section 3.2", "grows", "kernel_multiinformation", turned_round),
    ("section 3.2", "grows", "aggregate_log_densities", independent_whatever_comes),
    ("section 3.2", "gap", "shuffled", not_shuffled),
    ("section 3.2", "gap", "shuffled", constant_columns),
    ("section 3.2", "gap", "aggregate_log_densities", independent_whatever_comes),
    ("figure 3", "", "kernel_multiinformation", turned_round),
    ("figure 3", "", "latent_scales", constant_scales),
    ("figure 3", "", "descend", stays),
    ("figure 3", "", "descend", whitened_and_stretched),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(klm, BROKEN)
