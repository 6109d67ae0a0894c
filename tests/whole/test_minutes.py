"Each paper has one small task, trained live by `make minutes`, and here for a few updates; its sentence is stored."

import json
import re
from functools import wraps
from importlib import import_module
from pathlib import Path

import matplotlib
import pytest

from disentangle_repro.papers import PAPERS
from disentangle_repro.psa import mixture_experiment
from disentangle_repro.train import loop

NBS = Path(__file__).parents[2] / "nbs"
NUMBER = r"[+-]\d+\.\d\d"
SENTENCE = re.compile(rf"a difference of {NUMBER}, 95% interval {NUMBER} to {NUMBER} \(\d (seeds each|trainings)\)\.\n")
SEEDS = "SEEDS = range(310, 316)\n"
UPDATES = 10


def code_of(paper):
    (chapter,) = (NBS / paper).glob("*_in_minutes.ipynb")
    return [cell for cell in json.loads(chapter.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_has_a_small_task_whose_sentence_is_stored(paper):
    cells = code_of(paper)
    printed = "".join("".join(out["text"]) for cell in cells for out in cell["outputs"] if "text" in out)
    assert printed.startswith(f"{paper}: ") and SENTENCE.search(printed)
    training = [source for cell in cells if "in SEEDS" in (source := "".join(cell["source"]))]
    assert training and all(source.startswith("#| notest\n") for source in training)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_cells_of_a_small_task_run(paper, monkeypatch, capsys):
    "All of them, in their order, with a few updates for each of two seeds; three where the interval is over pairs."
    source = "\n".join("".join(cell["source"]) for cell in code_of(paper))
    assert source.count(SEEDS) == 1
    few = source.replace(SEEDS, f"SEEDS = range({3 if paper == 'psa' else 2})\n")
    fit, train = loop.fit, mixture_experiment.train

    @wraps(fit)  # `fit_images` reads its arguments
    def fit_briefly(training, updates, **how):
        return fit(training, min(updates, UPDATES), **how)

    for module in (loop, import_module("disentangle_repro.train.fit_images")):
        monkeypatch.setattr(module, "fit", fit_briefly)
    monkeypatch.setattr(mixture_experiment, "train", lambda seed, updates=UPDATES: train(seed, updates=updates))
    with matplotlib.rc_context({"backend": "agg"}):
        exec(compile(few, paper, "exec"), {"__name__": paper})
        matplotlib.pyplot.close("all")
    assert SENTENCE.search(capsys.readouterr().out)
