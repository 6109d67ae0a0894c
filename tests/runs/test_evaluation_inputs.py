"What scores are computed from: scenes that nobody trained on, and codes by their places where boosted trees look."

import numpy as np
import pytest
import torch

from disentangle_repro.core.device import seeded
from disentangle_repro.data.load import Dataset, load_dataset
from disentangle_repro.lab.runs import evaluate as evaluation
from disentangle_repro.lab.runs import slots
from disentangle_repro.models import create_model
from disentangle_repro.scores.dci import DCI


def numbered_file(n=100):
    "A published file whose images are their own numbers."
    images = torch.arange(n, dtype=torch.uint8).view(n, 1, 1, 1)
    splits = {"train": range(0, 80), "validation": range(80, 90), "test": range(90, 100)}
    return Dataset(
        name="numbered", source="official", images=images, sources=torch.zeros(n, 1, dtype=torch.int64), names=["none"],
        value_counts=[1], masks=torch.zeros(n, 1, 1, dtype=torch.uint8), splits=splits,
    )  # fmt: skip


@pytest.mark.parametrize("n", [None, 70, 1_000])
def test_no_published_scene_is_both_trained_on_and_scored(n, monkeypatch):
    monkeypatch.setattr(slots, "load_dataset", lambda *_, **__: numbered_file())
    trained = set(slots.training_scenes("numbered", "official", n).images.flatten().tolist())
    parts = [slots.held_out_scenes("numbered", "official", 10, split=name) for name in ("test", "validation")]
    test, validation = (set(part.images.flatten().tolist()) for part in parts)
    assert len(trained) == min(n or 80, 80) and len(test) == len(validation) == 10
    assert not trained & test and not trained & validation and not test & validation


def test_no_rendered_scene_is_both_trained_on_and_scored():
    drawn = [slots.training_scenes("sprites", "rendered", 20)]
    drawn += [slots.held_out_scenes("sprites", "rendered", 20, split=name) for name in ("test", "validation")]
    every = torch.cat([data.sources for data in drawn])
    assert len(every.unique(dim=0)) == 60


@pytest.mark.parametrize("model", ["qlae", "qvae"])
def test_boosted_trees_get_places_in_the_codebook_and_the_forest_values(model, monkeypatch):
    seen = {}

    def watched(sources, latents, *, predictor, **how):
        seen[predictor] = np.asarray(latents)
        return DCI(0.0, 0.0, 0.0, np.zeros((12, 6)), np.zeros(6, int), len(latents))

    monkeypatch.setattr(evaluation, "dci", watched)
    data = load_dataset("shapes3d", n=150)
    with seeded(0):
        network = create_model(model, dataset="shapes3d", width=0.05)
        torch.nn.init.normal_(network.latent.codebooks)
    scores = evaluation.evaluate(network, data, n=150, predictors=["boosting", "forest"]).scores
    assert {"d", "d_forest", "infom"} <= set(scores) and len(seen["boosting"]) == 150 and len(seen["forest"]) == 100
    values = network.latent.codebooks.detach().numpy()
    places = seen["boosting"][:100].astype(int)
    assert (places == seen["boosting"][:100]).all()
    told = values[np.arange(12), places] if model == "qlae" else values[places, 0]
    np.testing.assert_array_equal(told, seen["forest"])
