"Notebooks that are executed in this process: what their cells show, and that two share nothing."

from pathlib import Path

import pytest
from nbformat import read, validate, write
from nbformat.v4 import new_code_cell, new_notebook

from disentangle_repro.core.errors import Diverged
from disentangle_repro.lab.runs.runner import execute

FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"


def executed(folder: Path, *sources: str) -> list:
    "The outputs of cells, each with its kinds or its text; in a folder whose name looks like a template."
    book, copy = folder / "of {y}.ipynb", folder / "copy.ipynb"
    given = new_code_cell("seed = 0", metadata={"tags": ["parameters"]})
    write(new_notebook(cells=[given, *map(new_code_cell, sources)]), book)
    try:
        execute(str(book), copy, seed=3)
    finally:
        outputs = [cell.outputs for cell in read(copy, as_version=4).cells[2:]]
        validate(read(copy, as_version=4))
    return [[shown.get("text") or {*shown.data} - {"text/plain"} for shown in cell] for cell in outputs]


def test_cells_show_figures_tables_images_and_text(tmp_path):
    table, image = "import pandas\npandas.DataFrame({'a': [1]})", "from PIL import Image\nImage.new('RGB', (4, 4))"
    texts = "import sys\nprint(seed)\nprint('!', file=sys.stderr)\nseed;"
    shown = executed(tmp_path, FIGURE, table, image, texts)
    assert shown == [[{"image/png"}], [{"text/html"}], [{"image/png", "image/jpeg"}], ["3\n!\n"]]


def test_a_second_notebook_begins_without_the_names_of_the_first(tmp_path):
    executed(tmp_path, FIGURE)
    assert executed(tmp_path, "assert 'plt' not in globals()", FIGURE) == [[], [{"image/png"}]]


def test_an_error_is_raised_itself_and_the_copy_shows_where(tmp_path):
    with pytest.raises(Diverged, match="after 7 updates"):
        executed(tmp_path, "from disentangle_repro.core.errors import Diverged\nraise Diverged('after 7 updates')")
    last = read(tmp_path / "copy.ipynb", as_version=4).cells[-1]
    assert "raise" in last.outputs[0].text and "after 7 updates" in last.outputs[0].text
