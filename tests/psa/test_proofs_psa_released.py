"Each proof check of psa's experiment, released models and differences goes red when what it stands on is broken."

from mutations import Chapter, proof_tests
from torch import nn

experiment = Chapter("psa/07_mixture_experiment")
released = Chapter("psa/09_released_models")
against = Chapter("psa/10_paper_against_code")
SQUARES = released.squares_about


def about_the_new_mean(features, shares, point):
    return SQUARES(features, shares, features.centre + shares @ features.first / shares.sum(2, keepdim=True))


class UnitNorm(released.ReleasedMixture):
    def forward(self, features, generator=None):
        norm, self.norm = self.norm, nn.LayerNorm(features.shape[2], elementwise_affine=False)
        slots, self.norm = super().forward(features, generator), norm
        return slots


BROKEN = [
    ("released likelihood", "", "TAIL", 2.0),
    ("released code, P24", "", "squares_about", about_the_new_mean),
    ("released code, P24", "", "ReleasedMixture", UnitNorm),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(released, BROKEN)


def not_turned(a, b):
    return (a - b).square().mean().sqrt().item()


FIGURE = [("figure 4, aggregate posterior", "", "apart", not_turned)]
DIFFERENCE = [("released code, P15", "", "ReleasedMixture", against.ProbabilisticSlotAttention)]

test_a_broken_distance_is_seen, test_no_check_of_distances_is_left_unbroken = proof_tests(experiment, FIGURE)
test_a_broken_layer_is_seen, test_no_check_of_layers_is_left_unbroken = proof_tests(against, DIFFERENCE)
