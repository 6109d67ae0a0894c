"Each proof check of the released models of psa goes red when the formula it stands for is broken."

from mutations import Chapter, proof_tests
from torch import nn

released = Chapter("psa/09_released_models")
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
