"What factorqvae says of its table 1 in words, counted by hand off the printed table and judged by the ledger."

import math

import pandas as pd
import pytest

from disentangle_repro.papers import PAPERS
from disentangle_repro.report.overview import margin
from disentangle_repro.tables import paper_tables
from disentangle_repro.tables.claims import (
    CANNOT,
    comparisons,
    deciding_margin,
    judge,
    printed_numbers,
    read_claims,
    with_errors,
)
from disentangle_repro.tables.ledger import ledger

CLAIMS = {claim["id"]: claim for claim in read_claims("factorqvae")}
TABLE_1 = {  # D, InfoM, InfoE, InfoC and MSE on Shapes3D, Isaac3D and MPI3D, copied off the page
    "beta_vae": ((0.56, 0.62, 0.76, 0.75, 1.6), (0.45, 0.49, 0.46, 0.53, 1.5), (0.36, 0.39, 0.35, 0.39, 1.2)),
    "factorvae": ((0.72, 0.61, 0.81, 0.86, 1.6), (0.51, 0.56, 0.47, 0.62, 1.6), (0.20, 0.40, 0.23, 0.32, 1.4)),
    "qlae": ((0.91, 0.71, 0.99, 0.54, 0.9), (0.57, 0.52, 0.65, 0.37, 0.5), (0.36, 0.31, 0.40, 0.38, 0.6)),
    "dvae": ((0.89, 0.70, 0.99, 0.45, 4.4), (0.53, 0.60, 0.62, 0.33, 3.6), (0.33, 0.39, 0.66, 0.23, 2.2)),
    "qvae": ((0.73, 0.69, 0.93, 0.38, 0.8), (0.56, 0.51, 0.72, 0.34, 0.4), (0.34, 0.31, 0.77, 0.27, 0.9)),
    "factordvae": ((0.91, 0.49, 0.99, 0.32, 4.7), (0.62, 0.86, 0.66, 0.56, 5.7), (0.29, 0.37, 0.60, 0.25, 4.4)),
}
METRICS = ("d", "infom", "infoe", "infoc", "mse_e4")


def ahead(left, right, metrics, sign=1):
    "How often a model of `left` is ahead of one of `right`."
    places = [METRICS.index(metric) for metric in metrics]
    rows = [(a, b) for one in left for other in right for a, b in zip(TABLE_1[one], TABLE_1[other], strict=True)]
    return sum(sign * (a[place] - b[place]) > 1e-9 for a, b in rows for place in places)


def test_the_copy_is_the_reported_table():
    printed = printed_numbers("factorqvae").set_index(["model", "dataset", "metric"]).value
    for model, rows in TABLE_1.items():
        for dataset, row in zip(("shapes3d", "isaac3d", "mpi3d"), rows, strict=True):
            assert tuple(printed[model, dataset, metric] for metric in METRICS) == row, (model, dataset)


DISCRETE, CONTINUOUS = ("qlae", "qvae"), ("beta_vae", "factorvae")


@pytest.mark.parametrize(
    ("claim", "words", "good", "of"),
    [
        ("factorqvae-5", "generally", ahead(["factorvae"], ["beta_vae"], ["d", "infom"]), 6),
        ("factorqvae-9", "InfoMEC", ahead(DISCRETE, CONTINUOUS, ["infom", "infoe", "infoc"]), 36),
        ("factorqvae-10", "reconstruct", ahead(DISCRETE, CONTINUOUS, ["mse_e4"], -1), 12),
        ("factorqvae-11", "dVAE", ahead(["factordvae"], ["dvae"], ["d", "infom"]), 6),
        ("factorqvae-12", "QVAE", ahead(["dvae"], ["qvae"], ["d", "infom"]), 6),
    ],
)
def test_a_claim_without_intervals_is_counted_and_not_judged(claim, words, good, of):
    claim, printed = CLAIMS[claim], printed_numbers("factorqvae")
    assert words in claim["statement"] and len(comparisons(claim, printed)) == of
    verdict = judge(claim, printed)
    assert verdict.word == CANNOT and f"; {good} of {of} means as claimed" in verdict.why
    assert math.isnan(margin(claim, printed)) and math.isnan(deciding_margin(claim, printed))


def test_the_counts_are_those_of_the_prose():
    counts = [ahead(DISCRETE, CONTINUOUS, [metric]) for metric in ("infom", "infoe", "infoc")]
    assert counts == [6, 12, 1] and ahead(["dvae"], ["qvae"], ["d", "infom"]) == 4
    book = ledger("factorqvae")
    assert "InfoM 6 of 12, InfoE 12 of 12, InfoC 1 of 12" in book.reported_why["factorqvae-9"]


MOST = {
    "paper": "qlae",
    "kind": "in_most",
    "left": "x",
    "op": ">",
    "right": ["y"],
    "metrics": ["d"],
    "datasets": list("abcd"),
}


@pytest.mark.parametrize(
    ("differences", "word"),
    [((1, 1, 1, -9), "supported"), ((1, -1, -1, -1), "contradicted"), ((1, 1, 0, 0), "undecided")]
    + [((1, 1, -1, -1), "contradicted"), ((1, 1, 1), "supported"), ((1, 1), "supported"), ((), "not run")],
)
def test_more_than_half_are_most_of_those_that_were_run(differences, word):
    rows = [("x", place, "d", float(d)) for place, d in zip("abcd", differences, strict=False)]
    rows += [("y", place, "d", 0.0) for place in "abcd"]
    numbers = pd.DataFrame(rows, columns=["model", "dataset", "metric", "value"])
    numbers = with_errors(numbers.assign(ci95=0.05, seeds=5))
    verdict = judge(MOST, numbers)
    assert verdict.word == word
    assert bool(verdict.part) == (0 < len(differences) < 4), "some of four decide nothing but themselves"
    assert math.isnan(deciding_margin(MOST, numbers)) == (not differences)


def test_intervals_count_in_most_claims_too():
    rows = [(model, place, "d", value) for model, value in (("x", 1.0), ("y", 0.0)) for place in "abcd"]
    numbers = pd.DataFrame(rows, columns=["model", "dataset", "metric", "value"]).assign(seeds=5)
    assert judge(MOST, with_errors(numbers.assign(ci95=1.5))).word == "undecided"
    assert judge(MOST, with_errors(numbers.assign(ci95=0.2))).word == "supported"


def test_a_cell_in_two_tables_is_judged_once(monkeypatch):
    "AE on Shapes3D stands in tables 1 and 12 of qlae; its number is one."
    cell = {"paper": "qlae", "model": "ae", "dataset": "shapes3d", "metric": "infom", "ours": 0.4, "ours_ci95": 0.1}
    cells = pd.DataFrame([cell | {"seeds": 3, "updates": 10_000, "scale": "cpu"}])
    seen = []
    monkeypatch.setattr(paper_tables, "ledger", lambda key, numbers, decided: seen.append(numbers) or pd.DataFrame())
    monkeypatch.setattr(paper_tables, "rests_on", lambda cells: "")
    monkeypatch.setattr(paper_tables, "readable", lambda book: book)
    twice = [paper_tables.LaidOut(table, cells, "", False) for table in PAPERS["qlae"].tables[:2]]
    paper_tables.judged("qlae", twice)
    assert len(seen[0]) == 1
