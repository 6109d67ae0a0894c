"What needs no training: what is kept is what measuring again gives, and is judged from its numbers."

import json

import numpy as np
import pandas as pd
import pytest

from disentangle_repro.lab.study import measure_claims as measured
from disentangle_repro.lab.tables import without_training as free
from disentangle_repro.lab.tables.references import read_entries, reference
from disentangle_repro.lab.tables.verdicts import SUPPORTED, UNDECIDED
from disentangle_repro.lab.tables.without_training import CONTRADICTED

KEPT = free.without_training()
AGAIN = ("qlae-10", "qlae-11", "qlae-12", "qlae-13", "psa-5")


@pytest.mark.parametrize("claim", AGAIN)
def test_measuring_again_gives_what_is_kept(claim):
    "From the scores of the first study, whose records are gone, or by counting."
    again = json.loads(json.dumps(measured.MEASURED[claim](None)))
    assert again == {part: KEPT[claim][part] for part in again}


def test_everything_kept_says_where_it_is_from():
    assert KEPT.keys() - measured.MEASURED.keys() == {"psa-4"}
    for name, entry in [*KEPT.items(), *((of["conditions"]["dataset"], of) for of in read_entries())]:
        assert {"commit", "date", "device", "processor_seconds", "seeds"} <= entry.keys(), name


def test_a_spread_of_trainings_of_one_model_is_no_evidence_about_models():
    "Two models of which one is better by both scores: however many trainings, nothing is known of other models."
    generator = np.random.default_rng(0)
    better = np.repeat([0.0, 1.0], 50)
    two = pd.DataFrame({"model": better, "a": better + 0.1 * generator.normal(size=100)})
    two["b"] = better + 0.1 * generator.normal(size=100)
    drawn = measured.correlations_drawn(two, "a", "b", draws=400)
    assert measured.rank_correlation(two.a, two.b) > 0.7 and np.quantile(drawn, 0.1) < 0.5


@pytest.mark.parametrize(
    ("ends", "word"),
    [((2.3, 2.7), SUPPORTED), ((2.1, 2.7), UNDECIDED), ((2.9, 3.4), CONTRADICTED), ((1.0, 2.1), CONTRADICTED)],
)
def test_a_number_is_judged_by_both_of_its_limits(ends, word):
    number = free.Number("ratio", sum(ends) / 2, ends, ends, 2.2, 2.8)
    assert free.word_of([number]) == word
    entry = {"numbers": [number._asdict()], "part": "here", "on": "a clock"}
    verdict = free.without_training_verdicts(kept={"psa-5": json.loads(json.dumps(entry))})["psa-5"]
    assert verdict.word == word and verdict.part == ("" if word == UNDECIDED else "here") and "a clock" in verdict.note


def test_perfect_latents_are_at_the_ceiling_and_unrelated_ones_explain_nothing():
    for entry in (of for of in read_entries() if "slots" not in of["conditions"]):
        scores, conditions = reference(entry), entry["conditions"]
        values, one_hot = conditions["values"], conditions["categorical"] or "encoding" in conditions["procedure"]
        columns = conditions["latents"] * (values if one_hot else 1)
        assert all(scores.chance[name] < scores.ceiling[name] + 0.02 for name in scores.chance), conditions
        assert scores.chance["d"] < 0.1 and scores.ceiling["infom"] > 0.95
        by_columns = 0.02 + 3 * columns / conditions["samples"]  # a regression on many columns fits any samples
        assert scores.chance["infoe"] > 0.9 if columns > 5_000 else scores.chance["infoe"] < by_columns, conditions
        assert scores.ceiling["infoe"] > (0.99 if values is None or values >= 15 else 0.9), conditions
        assert all(len(of) == len(entry["seeds"]) for who in ("chance", "ceiling") for of in entry[who].values())
