"The command that makes tables, without training anything."

import math

import pytest

from disentangle_repro.core.scale import SCALES
from disentangle_repro.models import list_models
from disentangle_repro.tables import runner
from disentangle_repro.tables.layout import METRIC_NAMES, MODEL_NAMES, lay_out, reported_numbers, table_cells
from disentangle_repro.tables.plan import TABLES, paper_specs
from disentangle_repro.train import Store

EVERY_TABLE = [table for tables in TABLES.values() for table in tables]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    "A store of its own, and the notebooks that lay out tables not executed."
    store = Store(tmp_path / "runs", tmp_path / "results")
    monkeypatch.setattr(runner, "project_store", lambda: store)
    monkeypatch.setattr(runner, "execute", lambda notebook, output, **parameters: output.parent)
    return store


def done(spec, store):
    scores = {metric: 0.1 * (spec.seed + 1) for metric in METRIC_NAMES}
    store.finish(spec, {"scores": scores, "environment": {"device": "CPU"}})


def failing(spec, store):
    if spec.model == "ae":
        raise RuntimeError("out of memory")
    done(spec, store)


def test_a_failure_is_reported_and_does_not_stop_the_others(checkout, monkeypatch, capsys):
    monkeypatch.setattr(runner.do_runs, "__defaults__", (failing,))
    assert runner.main(["--papers", "qlae", "--scale", "smoke"]) == 1
    printed = capsys.readouterr().out
    assert "FAILED qlae-ae-" in printed and "out of memory" in printed and "run.ipynb" in printed
    finished = [spec.model for spec in paper_specs(["qlae"], SCALES["smoke"]) if checkout.record(spec)]
    assert finished == ["qlae"]


def test_a_second_call_does_nothing_again(checkout, monkeypatch):
    asked = []
    monkeypatch.setattr(runner.do_runs, "__defaults__", (lambda spec, store: (asked.append(spec), done(spec, store)),))
    assert runner.main(["--scale", "smoke"]) == 0
    assert runner.main(["--scale", "smoke"]) == 0
    assert len(asked) == 2


@pytest.mark.parametrize("option", [["--seeds", "0"], ["--updates", "-5"], ["--updates", "many"]])
def test_a_wrong_number_is_refused_by_name(option, capsys):
    with pytest.raises(SystemExit):
        runner.main(option)
    assert f"argument {option[0]}: invalid positive value: '{option[1]}'" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--scale", "big"], ["--papers", "qlea"], ["--engine", "tcp://nowhere"]])
def test_a_wrong_option_is_refused_with_the_choices(option, capsys):
    with pytest.raises(SystemExit):
        runner.main(option)
    assert "choose from" in capsys.readouterr().err


def test_numbers_of_several_seeds_stand_beside_the_papers(checkout):
    for spec in paper_specs(["qlae"], SCALES["smoke"], seeds=3):
        done(spec, checkout)
    cells = table_cells(EVERY_TABLE[0], SCALES["smoke"], "rendered", checkout, seeds=3)
    row = cells.query("model == 'qlae' and metric == 'infom'").iloc[0]
    assert (row.reported, row.reported_ci95, row.seeds, row.updates) == (0.95, 0.02, 3, 60)
    assert row.ours == pytest.approx(0.2) and row.ours_ci95 == pytest.approx(4.303 * 0.1 / math.sqrt(3), rel=1e-3)
    assert lay_out(cells).loc[("shapes3d", "QLAE"), ("InfoM", "ours")] == "0.20 ± 0.25"


@pytest.mark.parametrize("table", EVERY_TABLE, ids=lambda t: f"{t.paper}-{t.number}")
def test_a_table_asks_for_what_exists(table):
    assert set(table.models) <= set(list_models()) and set(table.models) <= set(MODEL_NAMES)
    assert set(table.metrics) <= set(METRIC_NAMES)
    assert set(table.reported_in) <= set(reported_numbers(table.paper).table)


@pytest.mark.parametrize("paper", ["qlae", "tripod", "factorqvae", "asymmetry", "psa"])
def test_reported_numbers_are_numbers_or_empty(paper):
    reported = reported_numbers(paper)
    assert list(reported.columns) == ["paper", "table", "model", "dataset", "metric", "value", "ci95", "note"]
    assert set(reported.paper) == {paper}
    assert not reported.duplicated(["table", "model", "dataset", "metric"]).any()
