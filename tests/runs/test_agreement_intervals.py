"Agreement has intervals over trainings: identical models are called different at most about once in 20 times."

import math
from itertools import permutations

import numpy as np
import pytest
import torch

from disentangle_repro.lab.tables.layout import mean_interval
from disentangle_repro.psa.agreement import pair_records
from disentangle_repro.psa.mixture_experiment import agreement

MODELS, TRAININGS, IMAGES = 160, 3, 24


def trained(generator, truth):
    "Slots of one training: the truth, with as much noise as this training's luck has it."
    noise = 0.2 + 0.8 * torch.rand(1, generator=generator, dtype=torch.float64)
    return truth + noise * torch.randn(truth.shape, generator=generator, dtype=torch.float64)


def record_of(slots):
    spec = {"model": "agreement", "dataset": "clevr6", "hyperparameters": {"of": "psa", "measurement": {"of": "psa"}}}
    return {"spec": spec, "pairs": agreement(slots, pairs=permutations).to_dict("list"), "environment": {}}


@pytest.fixture(scope="module")
def measured():
    "Records of as many models, all the same, each trained three times."
    stream = torch.Generator().manual_seed(0)
    truth = 3 * torch.randn(IMAGES, 2, 2, generator=stream, dtype=torch.float64)
    models = ([trained(stream, truth) for _ in range(TRAININGS)] for _ in range(MODELS))
    return [record_of(slots) for slots in models]


def called_different(intervals):
    "The share of all comparisons between two models whose means are further apart than their intervals allow."
    (mean, half) = np.array(intervals).T
    apart = abs(mean[:, None] - mean) > np.hypot(half[:, None], half)
    return apart[np.triu_indices(len(mean), 1)].mean()


@pytest.mark.parametrize("metric", ["smcc", "r2"])
def test_identical_models_are_seldom_called_different(measured, metric):
    "12,720 comparisons of 160 models that are one model; allowed is 5%, and the error of the share."
    of_models = [[run["scores"][metric] for run in pair_records([record])] for record in measured]
    share = called_different([mean_interval(scores) for scores in of_models])
    assert share <= 0.065, f"identical models are called different in {share:.1%} of comparisons"


@pytest.mark.parametrize("metric", ["smcc", "r2"])
def test_the_mean_is_that_of_all_pairs_and_trainings_are_counted(measured, metric):
    for record in measured[:20]:
        runs = pair_records([record])
        assert len(runs) == TRAININGS == len({run["spec"]["seed"] for run in runs})
        assert np.isclose(np.mean([run["scores"][metric] for run in runs]), np.mean(record["pairs"][metric]))


def test_two_trainings_have_a_mean_and_no_interval(measured):
    stream = torch.Generator().manual_seed(1)
    slots = torch.randn(2, IMAGES, 2, 2, generator=stream, dtype=torch.float64)
    (run,) = pair_records([record_of(slots)])
    mean, half = mean_interval([run["scores"]["smcc"]])
    assert math.isnan(half) and 0 < mean < 1 and run["trainings"] == 2
