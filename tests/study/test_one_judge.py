"Word, interval and seeds of each claim are the same in README, tables, results and report: those of one function."

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.report.overview import MEANINGS, claim_rows, claims_request
from disentangle_repro.lab.tables.cells import survey
from disentangle_repro.lab.tables.claims import signed
from disentangle_repro.lab.tables.claims_table import (
    TRAINED,
    claims_table,
    contrasts_table,
    counted,
    main_claims,
    verdict_text,
)
from disentangle_repro.papers import PAPERS
from disentangle_repro.train.store import project_store

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def table():
    return claims_table(project_store())


def test_readme_has_the_main_claims(table):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert main_claims(table) in readme and f"{counted(table)}." in readme, "write them into nbs/index.ipynb"
    rows = contrasts_table(project_store(), papers=["qlae"])
    (d,) = rows[rows.claim.eq("qlae-1") & rows.dataset.eq("shapes3d") & rows.metric.eq("d")].to_dict("records")
    cells = pd.read_csv(ROOT / "paper_tables/tables/study/qlae_table_12.csv").set_index(["model", "metric"])
    chance = "{:.2f} for QLAE, {:.2f} for AE".format(*cells.chance.loc[[("qlae", "infom"), ("ae", "infom")]])
    assert chance in readme and cells.chance.loc[[("qlae", "d"), ("ae", "d")]].max() < 0.01
    assert f"differ by {signed(d['end'], d['end_half'])}" in readme


@pytest.mark.parametrize("paper", PAPERS)
def test_the_published_tables(table, paper):
    folder = ROOT / "paper_tables" / "tables" / "study"
    published = pd.read_csv(folder / f"{paper}_claims.csv", index_col="claim", keep_default_na=False, dtype=str)
    mine = table[[claim.startswith(f"{paper}-") for claim in table.index]].astype(str)
    pd.testing.assert_frame_equal(published.astype(str), mine)
    numbers = pd.read_csv(folder / f"{paper}_contrasts.csv", keep_default_na=False, na_values=[""])
    ours = contrasts_table(project_store(), papers=[paper]).replace("", pd.NA)
    pd.testing.assert_frame_equal(numbers, ours, check_dtype=False, rtol=1e-9)


def test_the_results(table):
    "Their stored outputs, and the figure that README may show."
    cells = json.loads((ROOT / "nbs/lab/study/02_results.ipynb").read_text(encoding="utf-8"))["cells"]
    text = "".join(
        "".join(data)
        for cell in cells
        for output in cell.get("outputs", ())
        for data in output.get("data", {}).values()
    )
    assert f"{counted(table)}." in text
    for row in table[table.kind == TRAINED].to_dict("records"):
        shown = row["statement"], f"**{verdict_text(row)}**", row["contrast"]
        pattern = r"\s*\|.*".join(map(re.escape, shown))
        assert re.search(pattern, text), row["statement"]
        assert row["end"] == "–" or f"{row['end']} ({row['seeds']} seeds)" in text
    described = "; ".join(f"{claim}: {word}" for claim, word in table.word[table.role == "primary"].items())
    assert Image.open(ROOT / "nbs" / "images" / "primary_contrasts.png").text["Description"] == described


def test_the_report(table):
    found = survey(project_store())
    assert claims_request(found).scale.name == "study"
    rows = {row["id"]: row for row in claim_rows(claims_table(found.seen, Request(SCALES["study"])))}
    for claim, row in table.iterrows():
        shown = rows[claim]
        assert shown["verdict"]["text"] == verdict_text(row)
        assert row.word.startswith(tuple(MEANINGS)), "a word that the report's key leaves out"
        assert [shown[name] for name in ("end", "quality", "seeds")] == [
            row[name] for name in ("end", "quality", "seeds")
        ]
