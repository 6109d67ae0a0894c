"Each proof check of scalar codes goes red when the formula it stands for is broken."

import math

import torch
from mutations import Chapter, proof_tests
from torch.nn import functional as F

sc = Chapter("factorqvae/01_scalar_codes")


def entropy(logits):
    return torch.distributions.Categorical(logits=logits).entropy()


def reversed_kl(logits):
    return -F.log_softmax(logits, dim=-1).mean(-1) - math.log(logits.shape[-1])


def signed(encoded, codebook, squared=False):
    return (encoded[:, :, None] - codebook).sum(-1)


def city_block(encoded, codebook, squared=False):
    apart = (encoded[:, :, None] - codebook).abs().sum(-1)
    return apart.square() if squared else apart


def never_squared(encoded, codebook, squared=False):
    return ORIGINAL_DISTANCES(encoded, codebook)


def always_squared(encoded, codebook, squared=False):
    return ORIGINAL_DISTANCES(encoded, codebook, True)


def of_normal_numbers(logits, temperature, generator=None):
    noise = torch.randn(logits.shape, generator=generator, dtype=logits.dtype)
    return ((logits + noise) / temperature).softmax(-1)


def dice_untempered(logits, temperature, generator=None):
    gumbel = -torch.empty_like(logits).exponential_(generator=generator).log()
    return (logits / temperature + gumbel).softmax(-1)


def without_dice(logits, temperature, generator=None):
    return (logits / temperature).softmax(-1)


def always_warm(logits, temperature, generator=None):
    return ORIGINAL_RELAX(logits, 1.0, generator)


def hard(logits, temperature, generator=None):
    relaxed = ORIGINAL_RELAX(logits, temperature, generator)
    return F.one_hot(relaxed.argmax(-1), logits.shape[-1]).to(relaxed) + relaxed - relaxed.detach()


def cut_off(logits, temperature, generator=None):
    return ORIGINAL_RELAX(logits.detach(), temperature, generator)


def half_the_lead(logits, nats):
    return ORIGINAL_LEAD(logits, nats / 2)


def cold(done):
    return 0.001


ORIGINAL_DISTANCES, ORIGINAL_RELAX, ORIGINAL_LEAD = sc.distances, sc.relax, sc.lead_probability

KL, GUMBEL, TEMPERATURE = "equation 1, KL to the uniform prior", "section 4, Gumbel-max", "section 4, temperature"

BROKEN = [
    (KL, "", "uniform_kl", entropy),
    (KL, "", "uniform_kl", reversed_kl),
    ("equation 1", "", "uniform_kl", entropy),
    ("equation 1", "", "uniform_kl", reversed_kl),
    ("equation 3", "", "distances", signed),
    ("equation 3", "", "distances", city_block),
    ("equation 3", "", "distances", never_squared),
    ("equation 4", "mode", "distances", signed),
    ("equation 4", "mode", "distances", city_block),
    ("equation 4", "mode", "distances", never_squared),
    ("equation 4", "log-odds", "distances", always_squared),
    ("equation 4", "log-odds", "distances", never_squared),
    ("equation 4", "log-odds", "distances", signed),
    (GUMBEL, "", "relax", of_normal_numbers),
    (GUMBEL, "", "relax", dice_untempered),
    (GUMBEL, "", "relax", without_dice),
    (TEMPERATURE, "away from one-hot", "relax", always_warm),
    (TEMPERATURE, "away from one-hot", "relax", of_normal_numbers),
    (TEMPERATURE, "away from one-hot", "lead_probability", half_the_lead),
    (TEMPERATURE, "counter-example", "relax", hard),
    (TEMPERATURE, "counter-example", "temperature_at", cold),
    ("section 4, Gumbel-softmax", "", "relax", hard),
    ("section 4, Gumbel-softmax", "", "relax", cut_off),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(sc, BROKEN)
