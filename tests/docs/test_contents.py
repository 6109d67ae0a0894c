"What the book lists by hand is what there is; needs none of what builds it."

import json
import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

NBS = Path(__file__).parents[2] / "nbs"
BOOK = NBS / "_book"
broken_in_notebooks = runpy.run_path(str(BOOK / "links.py"))["broken_in_notebooks"]
API = sorted((BOOK / "api").glob("*.md"))


def test_every_page_of_the_reference_is_listed():
    listed = re.findall(r"^api/(\w+)$", (BOOK / "api.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [page.stem for page in API] and len(API) > 9


@pytest.mark.parametrize("page", API, ids=lambda page: page.stem)
def test_a_page_of_the_reference_is_of_a_module(page):
    assert [import_module(name) for name in re.findall(r"automodule:: ([\w.]+)", page.read_text())]


def test_every_chapter_without_a_room_is_listed():
    modules = runpy.run_path(str(BOOK / "chapters.py"))["MODULES"]
    assert sorted([*modules, "index"]) == sorted(path.stem for path in NBS.glob("*.ipynb"))


@pytest.mark.parametrize("folder", sorted(str(path.parent.relative_to(NBS)) for path in NBS.glob("*/**/index.ipynb")))
def test_chapters_are_numbered_in_reading_order_and_imports_of_proof_checks_are_none(folder):
    listed = runpy.run_path(str(BOOK / "chapters.py"))["chapters"](NBS / folder)
    numbers = [int(name.partition("_")[0]) for name in listed if name[0].isdigit()]
    assert numbers == [*range(min(numbers, default=0), min(numbers, default=0) + len(numbers))]
    assert not numbers or numbers[0] < 2
    assert not any("000_proofs" in name for name in listed)
    index = json.loads((NBS / folder / "index.ipynb").read_text(encoding="utf-8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in index if cell["cell_type"] == "markdown")
    linked = re.findall(r"^\d+\. \[[^]]+\]\((\d\w+)\.ipynb", text, re.MULTILINE)
    assert not linked or linked == [name for name in listed if name[0].isdigit()]


def test_the_head_of_a_chapter_is_from_its_words_and_imports(tmp_path):
    def cells(*cells):
        return {"cells": [{"cell_type": kind, "source": text.splitlines(keepends=True)} for kind, text in cells]}

    first = cells(("markdown", "# The first\n\n> It."), ("code", "#| default_exp folder.first"))
    code = "from disentangle_repro.folder.first import x"
    second = cells(("markdown", "# Two\n\n> It.\n\n" + "word " * 450), ("code", code))
    for name, notebook in (("01_first", first), ("02_second", second)):
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "folder" / f"{name}.ipynb").write_text(json.dumps(notebook))
    with_head = runpy.run_path(str(BOOK / "chapters.py"))["with_head"]
    (cell, _) = with_head("folder/02_second", second, tmp_path)
    assert cell["source"].split("\n\n")[2] == "*3 minutes to read; uses [The first](01_first.ipynb).*"
    assert with_head("folder/01_first", first, tmp_path)[0]["source"].endswith("> It.\n\n*1 minute to read.*")
    assert with_head("index", first, tmp_path) == first["cells"]


def test_links_of_chapters_lead_to_a_chapter_and_a_heading_in_it():
    found, links = broken_in_notebooks(NBS)
    assert links > 400 and not found


@pytest.mark.parametrize(
    ("link", "broken"),
    [
        ("02_other.ipynb", False),
        ("02_other.ipynb#a-runs-hyperparameters", False),
        ("02_other.ipynb#a-run's-hyperparameters", True),
        ("02_other.ipynb#the-term", False),
        ("02_other.ipynb#the--term", True),
        ("02_other.ipynb#infomec-1", False),
        ("02_other.ipynb#infomec-2", True),
        ("02_other.ipynb#no-heading", True),
        ("03_nowhere.ipynb", True),
        ("../CONTRIBUTING.md#here", True),
        ("#here", False),
        ("#there", True),
        ("https://example.org/02_other.ipynb#there", False),
    ],
)
def test_a_link_to_nowhere_is_found(tmp_path, link, broken):
    other = (
        "# A run's hyperparameters\n\n## `InfoMEC`\n\n## [InfoMEC](01_this.ipynb)\n\n"
        "```sh\n# no heading\n```\n\n## The $x$term"
    )
    (folder := tmp_path / "nbs").mkdir()
    (tmp_path / "CONTRIBUTING.md").write_text("# Here")  # which is not in the book
    for name, text in (("01_this", f"# Here\n\nSee [that]({link})."), ("02_other", other)):
        cell = {"cell_type": "markdown", "source": [text]}
        (folder / f"{name}.ipynb").write_text(json.dumps({"cells": [cell]}))
    assert broken_in_notebooks(folder) == ([("01_this.ipynb", link)] * broken, 1 + (":" not in link))


def test_every_published_table_is_on_a_page():
    written = runpy.run_path(str(BOOK / "tables.py"))["written"]
    tables = NBS.parent / "paper_tables" / "tables" / "study"
    pages = {path.stem: written(path.stem) for path in (BOOK / "tables").glob("*.md")}
    titles = {path.name: path.read_text(encoding="utf-8").partition("\n")[0] for path in tables.glob("*.md")}
    assert len(titles) > 40
    assert not [name for name, title in titles.items() if f"#{title}\n" not in pages[name.partition("_")[0]]]
