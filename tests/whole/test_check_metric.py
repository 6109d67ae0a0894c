"What holds of every metric, by its entry; and what `check_metric` says of metrics of which it does not hold."

import numpy as np
import pytest

from disentangle_repro.experiment.paper import Score
from disentangle_repro.metrics import METRICS, Metric, check_metric, mig
from disentangle_repro.scores.check_metric import CHANGES, leaves_alone

pytestmark = pytest.mark.filterwarnings("ignore")
CHANGED = {
    "infomec": {"units"},
    "sap": {"shift", "scale", "units"},
    "beta_vae_score": {"scale", "units"},
    "factor_vae_score": {"scale"},
    "mig_sup": {"scale", "units"},
    "irs": {"units"},
    "smcc": {"units"},
}


@pytest.mark.parametrize("name", METRICS)
def test_every_metric(name, beyond_annotations):
    check_metric(METRICS[name], **({"predictor": "kernel"} if name == "sis" else {}))


@pytest.mark.parametrize("name", CHANGED)
def test_units_matter_where_no_entry_says_otherwise(name):
    linear = ("shift", "scale", "units", "sign")[: 4 if name != "smcc" else 3]
    assert {change for change in linear if not leaves_alone(METRICS[name], change)} == CHANGED[name]
    assert not CHANGED[name] & set(METRICS[name].unchanged_by) and CHANGED[name] <= set(CHANGES)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_few_samples_are_refused_by_name(n):
    sources, latents, slots = np.arange(2 * n).reshape(n, 2), np.arange(2.0 * n).reshape(n, 2), np.ones((n, 2, 2))
    for name, arrays in {"infomec": (sources, latents), "dci": (sources, latents), "smcc": (slots, slots)}.items():
        with pytest.raises(ValueError, match="(sources|latents|slots_a) has"):
            METRICS[name](*arrays, discrete=False)


def size(sources, latents):
    return float(np.asarray(latents).std(axis=0).mean())


def in_place(sources, latents):
    latents *= 1
    latents[0, 0] = 0
    return mig(sources, latents)


def careless(sources, latents):
    return 0.5 if len(sources) != len(latents) else mig(sources, latents)


@pytest.mark.parametrize(
    ("function", "range_", "message"),
    [
        (size, (0, 99), "size is changed by scale"),
        (size, (0, 1), "size: .* is not in 0 to 1"),
        (in_place, (0, 1), "in_place changes latents"),
        (careless, (0, 1), "careless accepts sources without a row"),
    ],
)
def test_what_is_wrong_is_said(function, range_, message, beyond_annotations):
    metric = Metric("x", function, {"x": Score("x", range=range_)}, "", unchanged_by=("shift", "scale"))
    with pytest.raises(AssertionError, match=message):
        check_metric(metric)
