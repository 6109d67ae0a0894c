"Each proof check of D and C goes red when the formula it stands for is broken."

import numpy as np
from mutations import Chapter, proof_tests

scores = Chapter("scores/04_importance")

ORIGINAL = {name: getattr(scores, name) for name in ("shares", "spread")}


def entropy_in_nats(weights, axis):
    return ORIGINAL["spread"](weights, axis) * np.log(weights.shape[axis])


def base_too_large(weights, axis):
    n = weights.shape[axis]
    return ORIGINAL["spread"](weights, axis) * np.log(n) / np.log(n + 1)


def first_latent_only(importance):
    return float(1 - ORIGINAL["spread"](np.asarray(importance), axis=1)[0])


def unweighted(importance):
    return float(1 - ORIGINAL["spread"](np.asarray(importance), axis=1).mean())


def worst_source(importance):
    return float(1 - ORIGINAL["spread"](np.asarray(importance), axis=0).max())


SECTION_2 = "Eastwood & Williams 2018, section 2, "
BROKEN = [
    (SECTION_2 + "range", "", "spread", entropy_in_nats),
    (SECTION_2 + "ends", "", "spread", base_too_large),
    (SECTION_2 + "invariance", "", "disentanglement", first_latent_only),
    (SECTION_2 + "weights", "", "disentanglement", unweighted),
    (SECTION_2 + "duplicates", "", "disentanglement", unweighted),
    ("factorqvae, section 3.3.2", "", "disentanglement", unweighted),
    ("factorqvae, section 3.3.1", "", "completeness", worst_source),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(scores, BROKEN)
