"The proof check of psa's mixture experiment goes red when what it stands on is broken."

from mutations import Chapter, proof_tests

chapter = Chapter("psa/07_mixture_experiment")


def not_turned(a, b):
    return (a - b).square().mean().sqrt().item()


FIGURE = "figure 4, aggregate posterior"

BROKEN = [
    (FIGURE, "", "apart", not_turned),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, BROKEN)
