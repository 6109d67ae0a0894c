"""What the report says of the first study's records alone, and once records of the present study are there.

The records are made up. Notebooks and images are not there, as in a fresh checkout, and figures are not drawn.
"""

import random
import re
import shutil
from unittest.mock import patch

import matplotlib.pyplot as plt
import pytest
from report_fixture import random_image

from disentangle_repro.core.scale import SCALES
from disentangle_repro.papers import PAPERS
from disentangle_repro.plan.request import Request
from disentangle_repro.plan.specs import run_spec
from disentangle_repro.report import run_pages
from disentangle_repro.report.overview import judged_numbers, write_overview
from disentangle_repro.report.proofs_and_differences import proof_rows
from disentangle_repro.report.run_pages import write_run_pages
from disentangle_repro.report.table_pages import write_table_page
from disentangle_repro.tables.cells import survey
from disentangle_repro.train.store import Store

LEARNED, BLURRED = {"psnr": 31.0, "infoe": 0.9}, {"psnr": 19.0, "infoe": 0.5}


def record(score, reconstruction):
    "A made-up record of a model of latents."
    probes = [{"updates": n, "loss": 500 / n, "infom": score, "psnr": reconstruction["psnr"]} for n in (500, 1_000)]
    scores = dict.fromkeys(("infom", "d", "infoc", "c", "i"), score) | reconstruction
    found = {"nmi": [[score, 0.1, 0.0, 0.1]] * 6, "active": [True] * 4}
    return {"scores": scores, "environment": {"device": "pretended"}, "probes": probes} | found


def surveyed(folder, *runs):
    "What there is of some runs in a store: scale, seeds, and what models reconstruct."
    store = Store(folder / "runs", folder / "results")
    for scale, seeds, reconstruction in runs:
        for seed in range(1, seeds + 1):
            for model, score in (("qlae", 0.8), ("ae", 0.4)):
                spec = run_spec("qlae", model, "shapes3d", Request(SCALES[scale]), seed)
                store.finish(spec, record(score + 0.01 * seed, reconstruction))
    shutil.rmtree(store.runs, ignore_errors=True)  # not there without runs
    return survey(store)


def overview_of(found, site):
    return write_overview(found, site, checks=proof_rows([]), differences=1).read_text()


def report(folder, *runs):
    "The pages of a store with these runs."
    found, site = surveyed(folder, *runs), folder / "report"
    with patch.object(run_pages, "as_png", lambda figure: plt.close(figure) or random_image(random.Random(0))):
        return pages_of(found, site)


def pages_of(found, site):
    pages = {path.parent.name: path.read_text() for path in write_run_pages(found.seen, site)}
    table = write_table_page(PAPERS["qlae"].tables[0], found, site).read_text()
    return overview_of(found, site), table, pages


def line_of(overview, paper):
    "The line of a paper's primary contrast, as text."
    row = re.search(rf'<tr><th scope="row">{paper}</th>.*?</tr>', overview, re.S)[0]
    return " ".join(re.sub(r"<[^>]+>", " ", row).split())


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    "Pages of the first study's records."
    return report(tmp_path_factory.mktemp("first"), ("cpu", 3, LEARNED))


def test_the_first_study_alone(alone):
    overview, table, pages = alone
    assert "undecided cpu, 10,000 updates, 3 seeds" in line_of(overview, "qlae")
    assert all(" – not run" in line_of(overview, paper) for paper in PAPERS if paper != "qlae")
    figure = re.search(r"<svg.*?</svg>", overview, re.S)[0]
    assert all(re.search(rf"{paper}-\d+: ", figure) for paper in PAPERS), "a row in the figure for each paper"
    assert "38 of 40 rows not run" in table and "10,000 updates" in table


def test_once_the_study_has_records(tmp_path):
    overview, table, pages = report(tmp_path, ("cpu", 3, LEARNED), ("study", 4, LEARNED))
    assert re.search(r"\+0.40 ± 0.0\d supported .*study, [\d,]+ updates, 4 seeds", line_of(overview, "qlae"))
    assert {"cpu", "study"} == set(re.findall(r'<tr data-scale="(\w+)"', table))
    assert len(pages) == 14
    for page in pages.values():
        assert 'src="curve.png"' in page and 'src="nmi.png"' in page
        assert "elete" not in page and "make tables" not in page


def test_claims_are_judged_on_the_first_study_only_as_long_as_there_is_no_other(tmp_path):
    first, later = ("cpu", 3, LEARNED), ("study", 4, LEARNED)
    for runs, scales in (((first,), ["cpu"]), ((first, later), ["study"])):
        found = surveyed(tmp_path / scales[0], *runs)
        assert [basis.scale for basis, _ in judged_numbers("qlae", found)] == scales


def test_not_run_not_reached_and_undecided_are_three_states(alone, tmp_path):
    blurred, states = overview_of(surveyed(tmp_path, ("study", 4, BLURRED)), tmp_path / "report"), {}
    for name, paper, overview in (
        ("not run", "tripod", alone[0]), ("undecided", "qlae", alone[0]), ("not reached", "qlae", blurred)
    ):  # fmt: skip
        row = re.search(rf'<tr><th scope="row">{paper}</th>.*?class="judged".*?</td>', overview, re.S)[0]
        kind, colour, word = re.search(r'<span class="verdict (\w*)" style="--verdict: (#\w+)">([^<]+)', row).groups()
        states[word] = kind, colour
        assert word == name
    assert len(set(states.values())) == 3, "each has a look of its own"
