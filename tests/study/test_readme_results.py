"The README says of the primary contrasts what the tables of the study say, and its figure is drawn from them."

import re
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from disentangle_repro.core.files import project_root
from disentangle_repro.papers import PAPERS
from disentangle_repro.tables.claims import NOT_REACHED, NOT_RUN
from disentangle_repro.tables.figures import difference_text
from disentangle_repro.tables.ledger import primary_contrasts, written_numbers

ROOT = Path(__file__).parents[2]
RESULTS = (ROOT / "README.md").read_text(encoding="utf-8").split("## What came out")[1].split("\n## ")[0]


@pytest.fixture(scope="module")
def contrasts():
    folder = project_root() / "paper_tables" / "tables" / "study"
    return primary_contrasts({paper: written_numbers(paper, folder) for paper in PAPERS})


def sentences():
    "By paper, what is said of it."
    return dict(re.findall(r"^- \*\*(\w+)\*\*: (.*(?:\n  .*)*)", RESULTS, re.MULTILINE))


def with_half(value, half):  # none where no interval is known
    number = f"{round(value, 2) + 0.0:.2f}".replace("-", "−")
    return f"{number} ± {half:.2f}" if half == half else number


def test_each_paper_has_a_sentence_with_its_verdict(contrasts):
    said = sentences()
    assert list(said) == list(PAPERS)
    for of in contrasts.itertuples():
        text = said[of.claim.partition("-")[0]]
        if of.verdict == NOT_RUN:
            assert re.search("not trained|mixture experiment", text) and "**" not in text
        else:
            assert text.startswith(f"**{of.verdict}**")
            assert of.ours != of.ours or with_half(of.ours, of.ours_half) in text, "but for a reference alone"
            assert of.printed != of.printed or with_half(of.printed, of.printed_half) in text, "unless it is lost"


def test_the_claims_are_counted():
    folder = ROOT / "paper_tables" / "tables" / "study"
    words = pd.concat([pd.read_csv(folder / f"{paper}_claims.csv") for paper in PAPERS]).ours.value_counts()
    said = f"Of the papers' {words.sum()} claims, {words['supported']} are supported, {words['contradicted']} contra"
    also = f"dicted, {words['undecided']} undecided and {words[NOT_REACHED]} *{NOT_REACHED}*, since"
    assert said + also in RESULTS and f"; {words[NOT_RUN]} are not tested" in RESULTS


def test_the_figure_is_of_the_same_numbers(contrasts):
    said = [f"{of.claim}: {difference_text(of.ours, of.ours_half)} {of.verdict}" for of in contrasts.itertuples()]
    assert Image.open(ROOT / "nbs" / "images" / "primary_contrasts.png").text["Description"] == "; ".join(said)
