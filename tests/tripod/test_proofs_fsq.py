"Each proof check of finite scalar quantisation goes red when the formula it stands for is broken."

import pytest
import torch
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_number_of_values_has_that_many_and_keeps_them(dtype):
    wrong = []
    for n_values in range(2, 145):
        values = torch.linspace(-1, 1, n_values, dtype=dtype)
        code = quantize(values, n_values)
        kept = len(code.unique()) == n_values and torch.equal(quantize(code, n_values), code)
        wrong += [] if kept and torch.allclose(code, values, rtol=0, atol=1e-6) else [n_values]
    assert wrong == []


def test_the_layer_is_the_code_without_penalties_or_parameters():
    quantizer = Quantizer(6)
    encoded = 4 * torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    latents, penalties = quantizer(encoded)
    assert torch.equal(latents, quantizer.code(encoded)) and penalties == {} and quantizer.discrete
    assert quantizer.n_values == 12 and not list(quantizer.parameters())
    assert quantizer.embed(latents).equal(latents) and quantizer.encoder_dims == quantizer.decoder_dims == 1


def test_very_loud_encoders_stay_on_the_grid():
    assert Quantizer(2)(torch.tensor([[-1e9, 1e9]])).latents.tolist() == [[-1.0, 1.0]]


@pytest.mark.parametrize("n_values", [1, 0, -3])
def test_too_few_values_are_refused(n_values):
    with pytest.raises(ValueError, match=f"n_values is {n_values} but a latent needs at least 2"):
        Quantizer(3, n_values)
