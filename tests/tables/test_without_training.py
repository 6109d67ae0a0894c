"What needs no training: what is recorded is what measuring again gives, and is judged from its numbers."

import json

import numpy as np
import pytest

from disentangle_repro.data.load import GRIDS
from disentangle_repro.experiment.paper import CLAIMS
from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.records import older_references, references
from disentangle_repro.lab.runs.runner import execute_run
from disentangle_repro.lab.tables import without_training as free
from disentangle_repro.lab.tables.verdicts import SUPPORTED, UNDECIDED
from disentangle_repro.lab.tables.without_training import CONTRADICTED
from disentangle_repro.papers import PAPERS
from disentangle_repro.train.store import Store, project_store


def test_measuring_the_first_study_again_gives_what_is_recorded(tmp_path):
    (spec,) = PAPERS["qlae"].measurement(CLAIMS).specs(SCALES["study"], ())
    again = Store(tmp_path / "runs", tmp_path / "results")
    execute_run(spec, again)
    assert again.record(spec)["claims"] == project_store().record(spec)["claims"]


def test_every_measured_claim_says_what_it_is_from():
    records = free.claim_records(project_store())
    assert [record["spec"]["paper"] for record in records] == ["qlae", "tripod", "psa"]
    for record in records:
        assert {"commit", "device"} <= record["environment"].keys() and record["processor_seconds"] > 0
        assert all({"on", "seeds"} <= measured.keys() for measured in record["claims"].values())


@pytest.mark.parametrize(
    ("ends", "word"),
    [((2.3, 2.7), SUPPORTED), ((2.1, 2.7), UNDECIDED), ((2.9, 3.4), CONTRADICTED), ((1.0, 2.1), CONTRADICTED)],
)
def test_a_number_is_judged_by_both_of_its_limits(ends, word):
    number = free.Number("ratio", sum(ends) / 2, ends, ends, 2.2, 2.8)
    assert free.word_of([number]) == word
    entry = {"numbers": [number._asdict()], "part": "here", "on": "a clock"}
    verdict = free.measured_verdict("psa-5", json.loads(json.dumps(entry)))
    assert verdict.word == word and verdict.part == ("" if word == UNDECIDED else "here") and "a clock" in verdict.note


def test_perfect_latents_are_perfect_and_unrelated_ones_explain_nothing():
    kinds = {id(entry): (run, entry) for run, entry in older_references().items() if "slots" not in entry["conditions"]}
    assert len(kinds) > 5
    for run, entry in kinds.values():
        scores, conditions = references([{"id": run, "spec": {"seed": 0}}]), entry["conditions"]
        values, one_hot = conditions["values"], conditions["categorical"] or "encoding" in conditions["procedure"]
        columns = conditions["latents"] * (values if one_hot else 1)
        assert all(scores.chance[name] < scores.perfect[name] + 0.02 for name in scores.chance), conditions
        assert scores.chance["d"] < 0.1 and scores.perfect["infom"] > 0.95
        by_columns = 0.02 + 3 * columns / conditions["samples"]  # a regression on many columns fits any samples
        assert scores.chance["infoe"] > 0.9 if columns > 5_000 else scores.chance["infoe"] < by_columns, conditions
        of_sources = GRIDS[conditions["dataset"]].sources.value_counts
        best = [1 if values is None or values >= n else np.log(values) / np.log(n) for n in of_sources]
        assert scores.perfect["infoe"] > np.mean(best) - 0.01, conditions  # ten values cannot tell forty apart
        assert all(len(of) == len(entry["seeds"]) for who in ("chance", "perfect") for of in entry[who].values())
