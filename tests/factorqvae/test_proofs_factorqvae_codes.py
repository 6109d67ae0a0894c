"Each proof check of scalar codes goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

sc = Chapter("factorqvae/01_scalar_codes")


def entropy(logits):
    return torch.distributions.Categorical(logits=logits).entropy()


def signed(encoded, codebook, squared=False):
    return (encoded[:, :, None] - codebook).sum(-1)


def without_dice(logits, temperature, generator=None):
    return (logits / temperature).softmax(-1)


def always_warm(logits, temperature, generator=None):
    return ORIGINAL_RELAX(logits, 1.0, generator)


def cut_off(logits, temperature, generator=None):
    return ORIGINAL_RELAX(logits.detach(), temperature, generator)


def cold(done):
    return 0.001


ORIGINAL_RELAX = sc.relax

KL, GUMBEL, TEMPERATURE = "equation 1, KL to the uniform prior", "section 4, Gumbel-max", "section 4, temperature"

BROKEN = [
    (KL, "", "uniform_kl", entropy),
    ("equation 1", "", "uniform_kl", entropy),
    ("equation 3", "", "distances", signed),
    ("equation 4", "mode", "distances", signed),
    ("equation 4", "log-odds", "distances", signed),
    (GUMBEL, "", "relax", without_dice),
    (TEMPERATURE, "away from one-hot", "relax", always_warm),
    (TEMPERATURE, "counter-example", "temperature_at", cold),
    ("section 4, Gumbel-softmax", "", "relax", cut_off),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(sc, BROKEN)
