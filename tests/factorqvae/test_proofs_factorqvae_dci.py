"Each proof check of the two kinds of DCI goes red when what it stands on is broken."

import numpy as np
from mutations import Chapter, proof_tests, takes_long

from disentangle_repro.scores.importance import spread

two_dcis = Chapter("factorqvae/04_two_dcis")

DCI, INFOMEC = two_dcis.dci, two_dcis.infomec


def plain_mean(importance):
    "D without its weights."
    return float(1 - spread(importance, axis=1).mean())


def as_they_are(codes, seed=0):
    return codes


def merged(codes, seed=0):
    "Two codes under one number."
    return codes // 2


def by_remainder(sources, latents, **how):
    "DCI that does not keep to the order of codes."
    return DCI(sources, np.asarray(latents) % 7, **how)


def by_rank(sources, latents, **how):
    "DCI of latents that know nothing but the order of rows, whatever the codes."
    return DCI(sources, np.tile(np.arange(len(latents))[:, None], (1, latents.shape[1])), **how)


def always_numbers(sources, latents, **how):
    "InfoE that sees codes as numbers under every protocol."
    return INFOMEC(sources, latents, **how | {"protocol": "paper"})


def always_indicators(sources, latents, **how):
    return INFOMEC(sources, latents, **how | {"protocol": "code"})


def one_predictor(sources, latents, seed=0):
    "The forest's scores under both names."
    d = DCI(sources, latents, predictor="forest", seed=seed).d
    return {"d": d, "d_forest": d}


WEIGHTS, ORDER, TWO = "section 3.3.1, weights", "section 3.3.1, order of codes", "section 3.3.1, two predictors"
RELABELLED = "section 3.3.2, relabelled codes"

BROKEN = [
    (WEIGHTS, "", "disentanglement", plain_mean),
    (WEIGHTS, "", "weighted_completeness", two_dcis.completeness),
    (WEIGHTS, "", "completeness", two_dcis.weighted_completeness),
    (RELABELLED, "", "relabelled", merged),
    (RELABELLED, "", "relabelled", as_they_are),
    (RELABELLED, "", "infomec", always_numbers),
    (RELABELLED, "", "infomec", always_indicators),
    takes_long(ORDER, "", "relabelled", as_they_are),
    (ORDER, "", "dci", by_remainder),
    takes_long(ORDER, "", "dci", by_rank),
    takes_long(TWO, "", "relabelled", as_they_are),
    (TWO, "", "both_scores", one_predictor),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(two_dcis, BROKEN)
