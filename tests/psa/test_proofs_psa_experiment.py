"The proof check of psa's mixture experiment goes red when what it stands on is broken."

import torch
from mutations import Chapter, proof_tests

chapter = Chapter("psa/07_mixture_experiment")


RATIOS = chapter.aggregate_ratios


def not_turned(a, b):
    return (a - b).square().mean().sqrt().item()


def turned_and_not_mirrored(a, b):
    return min(not_turned(a, b.roll(k, 0)) for k in range(len(b)))


def as_they_are(draws):
    return torch.eye(2, dtype=draws.dtype)


def in_standard_deviations(fits, refits, n_unrelated=10):
    "Distances as they are, not in units of that of a run from itself."
    found = RATIOS(fits, refits, n_unrelated)
    of_unrelated = {kind: [found.unit * x for x in of_kind] for kind, of_kind in found.unrelated.items()}
    return chapter.AggregateRatios(found.unit, [found.unit * x for x in found.pairs], of_unrelated)


FIGURE = "figure 4, aggregate posterior"

BROKEN = [
    (FIGURE, "", "apart", not_turned),
    (FIGURE, "", "apart", turned_and_not_mirrored),
    (FIGURE, "", "whitening", as_they_are),
    (FIGURE, "", "MOST_APART", 8.0),
    (FIGURE, "", "aggregate_ratios", in_standard_deviations),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, BROKEN)
