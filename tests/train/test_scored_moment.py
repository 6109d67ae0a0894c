"Which moment of a training is scored: the last one that reconstructs nearly as well as the best."

import pytest
import torch
from torch import nn

from disentangle_repro.baselines.autoencoder import Autoencoder
from disentangle_repro.train import Training, fit, make_optimizer
from disentangle_repro.train.loop import load


def new_training():
    decoder = nn.Sequential(nn.Linear(4, 4), nn.Unflatten(1, (1, 2, 2)))
    model = Autoencoder(nn.Sequential(nn.Flatten(), nn.Linear(4, 4)), decoder)
    optimizer = make_optimizer(model, learning_rate=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0)
    images = torch.randint(256, (16, 2, 2, 1), dtype=torch.uint8)
    return Training(model, optimizer, images, batch_size=4, seed=0)


@pytest.mark.parametrize(
    ("psnr", "scored"),
    [([20, 25, 30], 30), ([20, 30, 29.5], 30), ([20, 30, 25], 20), ([30, 20, 28], 10), ([30, 20, 29], 30)],
)
def test_what_is_put_aside(tmp_path, psnr, scored):
    said, weights = iter(psnr), {}
    training = new_training()

    def probe(model):
        weights[training.updates] = model.encoder[1].weight.detach().clone()
        return {"psnr": float(next(said))}

    fit(training, 30, log_every=10, probe=probe, probe_every=10, kept=tmp_path / "kept.pt", progress=False)
    aside = new_training()
    load(aside, tmp_path / "kept.pt")
    assert aside.updates == scored and aside.model.encoder[1].weight.equal(weights[scored])
    assert len({weight.sum().item() for weight in weights.values()}) == 3, "the three moments differ"
