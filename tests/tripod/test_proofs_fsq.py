"Each proof check of finite scalar quantisation goes red when the formula it stands for is broken."

import pytest
from mutations import Chapter, proof_tests

fsq = Chapter("tripod/01_finite_scalar_quantization")


quantize, straight_through, Quantizer = fsq.quantize, fsq.straight_through, fsq.FiniteScalarQuantizer


def rounded_down(bounded, n_values):
    steps = n_values - 1
    return 2 * ((bounded + 1) / 2 * steps).floor() / steps - 1


def drawn_to_the_middle(bounded, n_values):
    return 0.9 * quantize(bounded, n_values)


class StraightThroughTheTangent(Quantizer):
    def forward(self, continuous, generator=None):
        return fsq.LatentOutput(straight_through(continuous, self.code(continuous)), {})


BROKEN = [
    ("equation 10", "exactly", "quantize", drawn_to_the_middle),
    ("equation 10", "bit for bit", "quantize", drawn_to_the_middle),
    ("equation 10", "nothing moves", "quantize", rounded_down),
    ("section 3.1", "gradient", "FiniteScalarQuantizer", StraightThroughTheTangent),
    ("section 3.1", "same code", "quantize", rounded_down),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(fsq, BROKEN)


@pytest.mark.parametrize("n_values", [1, 0, -3])
def test_too_few_values_are_refused(n_values):
    with pytest.raises(ValueError, match=f"n_values is {n_values} but must be a whole number of at least 2"):
        Quantizer(3, n_values)
