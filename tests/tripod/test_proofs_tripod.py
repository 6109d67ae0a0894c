"Each proof check of Tripod's objective goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

tripod = Chapter("tripod/06_tripod")


def together(latents, scales):
    return ORIGINAL_KLM(latents, scales) + 0.01


def one_sided(decoder, latents, scales, **how):
    "The decoder's own weights take no part."
    with torch.no_grad():
        value = ORIGINAL_NHP(decoder, latents, scales, **how)
    return value + 0 * latents.sum()


def rectified(latent, n_latents, family, **nets):
    return ORIGINAL_NETWORKS(latent, n_latents, family="style", **nets)


ORIGINAL_NETWORKS = tripod.make_networks
ORIGINAL_KLM, ORIGINAL_NHP = tripod.kernel_multiinformation, tripod.normalized_hessian_penalty

BROKEN = [
    ("Algorithm 1", "", "kernel_multiinformation", together),
    ("equation 9, networks", "", "make_networks", rectified),
    ("section 4.1", "", "kernel_multiinformation", together),
    ("table 6", "", "kernel_multiinformation", together),
    ("section 1", "", "normalized_hessian_penalty", one_sided),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(tripod, BROKEN)
