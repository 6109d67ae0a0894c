"Each paper has one small task that is trained live by `make minutes`, and by no test; its sentence is stored."

import json
import re
from pathlib import Path

import pytest

from disentangle_repro.papers import PAPERS

NBS = Path(__file__).parents[2] / "nbs"
NUMBER = r"[+-]\d+\.\d\d"
SENTENCE = re.compile(rf"a difference of {NUMBER}, 95% interval {NUMBER} to {NUMBER} \(6 (seeds each|trainings)\)\.\n")


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_has_a_small_task_whose_sentence_is_stored(paper):
    (chapter,) = (NBS / paper).glob("*_in_minutes.ipynb")
    cells = json.loads(chapter.read_text(encoding="utf-8"))["cells"]
    printed = "".join("".join(out["text"]) for cell in cells for out in cell.get("outputs", ()) if "text" in out)
    assert printed.startswith(f"{paper}: ") and SENTENCE.search(printed)
    training = [source for cell in cells if "in SEEDS" in (source := "".join(cell["source"]))]
    assert training and all(source.startswith("#| notest\n") for source in training)
