"What perfect and unrelated latents score by a model's procedure."

import pytest
import torch

from disentangle_repro.core.device import make_generator
from disentangle_repro.lab.runs.evaluate import (
    Autoencoder,
    chance_and_perfect,
    infomec_and_dci,
    perfect_latents,
)
from disentangle_repro.qlae.latent_quantization import LatentQuantizer

COUNTS = torch.tensor([10, 10, 10, 8, 4, 15])
SOURCES = (torch.rand((2_000, 6), generator=make_generator(0)) * COUNTS).long()


def test_six_perfect_and_six_idle_latents_of_2000_samples():
    "By the text's forest of 30 trees D is 0.53, to 0.07; what is unrelated scores below 0.1."
    paper = chance_and_perfect(SOURCES, 12, n_values=15, n_trees=30)
    assert paper["perfect"]["d"] == pytest.approx(0.53, abs=0.07)
    assert min(paper["perfect"][name] for name in ("infom", "infoe", "infoc", "i")) > 0.93
    assert max(paper["chance"][name] for name in ("infoe", "infoc", "d", "c")) < 0.1


def test_the_procedure_is_the_models():
    quantized = Autoencoder(torch.nn.Identity(), torch.nn.Identity(), LatentQuantizer(12))
    how = {"n_trees": 5, "protocol": "code", "neighbors": 5, "seed": 3}
    latents = perfect_latents(SOURCES[:300], 12, 10, generator=make_generator(3))
    of_model = infomec_and_dci(quantized, SOURCES[:300], latents, **how).scores
    assert chance_and_perfect(SOURCES[:300], 12, n_values=10, **how)["perfect"] == of_model


def test_too_few_latents_are_never_perfect_and_unknown_idle_ones_are_refused():
    assert list(chance_and_perfect(SOURCES[:300], 5, n_trees=3)) == ["chance"]
    with pytest.raises(ValueError, match="n_latents is 5 but sources has 6 columns"):
        perfect_latents(SOURCES, 5)
    with pytest.raises(ValueError, match="idle is 'dead' but must be one of 'constant', 'noise'"):
        perfect_latents(SOURCES, 9, idle="dead")
