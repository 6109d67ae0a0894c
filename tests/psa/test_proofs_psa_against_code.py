"The proof check of psa's *Paper against code* goes red when one of the two layers does what the other does."

from mutations import Chapter, proof_tests

against = Chapter("psa/10_paper_against_code")

BROKEN = [
    ("released code, P15", "", "ReleasedMixture", against.ProbabilisticSlotAttention),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(against, BROKEN)
