"Each proof check of factorqvae's total correlation and of its Algorithm 1 goes red when its formula is broken."

import torch
from mutations import Chapter, proof_tests

density_ratio = Chapter("factorqvae/02_total_correlation")
factorqvae = Chapter("factorqvae/03_factorqvae")

ORIGINAL = density_ratio.names
factorial = ORIGINAL["factorial"]


def without_the_joint(joint):
    return torch.special.entr(factorial(joint)).sum()


def smoothed(codes, size):
    return (ORIGINAL["tabulate"](codes, size) + 0.01) / (1 + 0.01 * torch.Size(size).numel())


def whole_rows(codes, generator=None):
    return codes[torch.randperm(len(codes), generator=generator)]


def exaggerating(draw, **how):
    "Of the best discriminator: within 0.05 where latents depend, but not within 0.02 where they do not."
    drawn = draw(200_000, torch.Generator().manual_seed(0))
    joint = ORIGINAL["tabulate"](drawn.argmax(2), (drawn.shape[2],) * drawn.shape[1])
    logits = ORIGINAL["log_density_ratio"](joint + 1e-9) + 0.03
    return lambda codes: logits[codes.argmax(2).unbind(1)]


def at_one_temperature(relaxed, logits, temperature):
    return ORIGINAL["relaxed_log_ratio"](relaxed, logits, 1.0)


PERMUTED, RELAXED, SIGN = "section 4, permuted codes", "section 4, relaxed codes", "equation 8, sign"

DENSITY_RATIO = [
    ("equation 6", "", "exact_total_correlation", without_the_joint),
    (PERMUTED, "exactly", "tabulate", smoothed),
    (PERMUTED, "share", "tabulate", smoothed),
    ("section 4, sample size", "", "permute", whole_rows),
    ("equation 8", "", "discriminator_loss", ORIGINAL["printed_loss"]),
    (SIGN, "", "discriminator_loss", ORIGINAL["printed_loss"]),
    ("equation 7", "", "trained_discriminator", exaggerating),
    (RELAXED, "", "relaxed_log_ratio", at_one_temperature),
]


class StrengthsExchanged(factorqvae.FactorQVAE):
    def __init__(self, *sizes, beta, gamma, **how):
        super().__init__(*sizes, beta=gamma, gamma=beta, **how)


class AlwaysPressed(factorqvae.FactorQVAE):
    def __init__(self, *sizes, **how):
        super().__init__(*sizes, **how | {"gamma": 0.1})


FACTORQVAE = [
    ("Algorithm 1", "", "FactorQVAE", StrengthsExchanged),
    ("Algorithm 1, gradients", "", "FactordVAE", factorqvae.FactorQVAE),
    ("equation 5", "", "FactorQVAE", AlwaysPressed),
]

test_a_broken_estimate_is_seen, test_no_check_of_the_estimate_is_left_unbroken = proof_tests(
    density_ratio, DENSITY_RATIO
)
test_a_broken_model_is_seen, test_no_check_of_the_model_is_left_unbroken = proof_tests(factorqvae, FACTORQVAE)
