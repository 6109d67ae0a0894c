"The README's numbers of the study are those of its records."

from pathlib import Path

import pytest

from disentangle_repro.papers import MODEL_NAMES, PAPERS
from disentangle_repro.study.first import REQUEST
from disentangle_repro.tables.layout import our_cell, printed_cell, table_cells
from disentangle_repro.train.store import project_store

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
METRICS = ("infom", "d")


def rows():
    "The table's rows as lists of texts, by model."
    lines = README.split("\n| model |")[1].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {model: numbers for model, *numbers in cells}


@pytest.fixture(scope="module")
def cells():
    found = table_cells(PAPERS["qlae"].tables[0], REQUEST, project_store())
    return found[(found.dataset == "shapes3d") & found.metric.isin(METRICS)]


@pytest.mark.parametrize("model", ["ae", "beta_vae", "beta_tcvae", "bioae", "vqvae", "qlae"])
def test_a_row_is_what_is_printed_and_what_was_found(cells, model):
    of = cells[cells.model == model].sort_values("metric", key=lambda names: names.map(METRICS.index)).itertuples()
    assert rows()[MODEL_NAMES[model]] == [text for cell in of for text in (printed_cell(cell), our_cell(cell, 3))]


def test_there_is_no_other_row(cells):
    assert len(rows()) == 6 and (cells[cells.model.isin(["ae", "qlae"])].seeds == 3).all()


def test_what_is_told_beside_the_table(cells):
    infom, d = (cells[cells.metric == metric].set_index("model").ours.dropna() for metric in METRICS)
    assert set(infom.nlargest(2).index) == {"vqvae", "qlae"} and d.idxmax() == "qlae"
    assert infom["vqvae"] - infom["qlae"] < 0.03
