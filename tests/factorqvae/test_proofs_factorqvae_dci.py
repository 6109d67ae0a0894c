"Each proof check of the two kinds of DCI goes red when what it stands on is broken."

import numpy as np
from mutations import Chapter, proof_tests

two_dcis = Chapter("factorqvae/04_two_dcis")

DCI, INFOMEC = two_dcis.dci, two_dcis.infomec


def by_remainder(sources, latents, **how):
    "DCI that does not keep to the order of codes."
    return DCI(sources, np.asarray(latents) % 7, **how)


def always_indicators(sources, latents, **how):
    return INFOMEC(sources, latents, **how | {"protocol": "code"})


def one_predictor(sources, latents, seed=0):
    "The forest's scores under both names."
    d = DCI(sources, latents, predictor="forest", seed=seed).d
    return {"d": d, "d_forest": d}


WEIGHTS, ORDER, TWO = "section 3.3.1, weights", "section 3.3.1, order of codes", "section 3.3.1, two predictors"
RELABELLED = "section 3.3.2, relabelled codes"

BROKEN = [
    (WEIGHTS, "", "weighted_completeness", two_dcis.completeness),
    (RELABELLED, "", "infomec", always_indicators),
    (ORDER, "", "dci", by_remainder),
    (TWO, "", "both_scores", one_predictor),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(two_dcis, BROKEN)

scores = Chapter("factorqvae/04_two_dcis", "scores.infomec")
SQUARED = [(RELABELLED, "", "compactness", lambda nmi: scores.modularity(nmi.T) ** 2)]
test_a_broken_score_is_seen, _ = proof_tests(scores, SQUARED)
