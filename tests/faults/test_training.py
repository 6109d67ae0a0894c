"What goes wrong in a training: a loss that is no number, no memory left, a kernel that dies."

import math
import re

import nbformat
import pytest
import torch
from small_runs import at, files_of, results, specs, store_in, train, undisturbed

from disentangle_repro.core.engine import executor
from disentangle_repro.runs import runner
from disentangle_repro.runs.runner import do_runs
from disentangle_repro.train.loop import read_state


def poison(training):
    next(training.model.parameters()).data.fill_(math.nan)


def no_memory(training):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")


@pytest.mark.parametrize(
    ("fault", "then", "said"),
    [
        ("loss turned NaN", poison, "loss is nan.*between updates 20 and 30, at a learning rate of 0.001.*clip"),
        ("out of memory in a step", no_memory, "CUDA out of memory. Tried to allocate 20.00 MiB"),
    ],
)
def test_a_run_that_fails_stops_alone_and_goes_on_later(fault, then, said, tally, tmp_path):
    store, (first, bad, last) = store_in(tmp_path / "disturbed"), specs(3)

    def train_badly(spec, store):
        train(spec, store, at(25, then) if spec is bad else lambda training: None)

    with executor("local", at_once=1) as pool:
        failures = do_runs([first, bad, last], store, pool, train_badly)
        assert list(failures) == [bad.id] and store.failure(bad)["error"] == failures[bad.id]
        assert re.search(said, failures[bad.id])
        before, checkpoint = results(store), read_state(files_of(bad, store)[0])
        assert checkpoint["updates"] == 20 and all(map(math.isfinite, (p["loss"] for p in checkpoint["curve"])))
        assert do_runs([first, bad, last], store, pool, train) == {} and store.failure(bad) is None
    after = results(store)
    lost = sum(after.get(run) != record for run, record in before.items()) + 2 - len(before)
    tally(fault, lost=lost, believed=bad.id in before, equal=after == undisturbed(tmp_path / "in peace", specs(3)))


def test_a_kernel_that_dies_is_said_and_stops_nothing_else(tally, tmp_path, monkeypatch):
    "As when the system kills the process that has taken the most memory."
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import os; os._exit(9)")])
    notebook.metadata.kernelspec = {"name": "python3", "language": "python", "display_name": "python3"}
    (tmp_path / "nbs" / "runs").mkdir(parents=True)
    nbformat.write(notebook, tmp_path / "nbs" / "runs" / "run.ipynb")
    monkeypatch.setattr(runner, "project_root", lambda: tmp_path)
    store, (dying, *others) = store_in(tmp_path), specs(3)

    def do(spec, store):
        runner.execute_run(spec, store) if spec is dying else train(spec, store)

    with executor("local", at_once=1) as pool:
        failures = do_runs([dying, *others], store, pool, do)
        assert list(failures) == [dying.id] and "Kernel died" in failures[dying.id]
        before = results(store)
        assert do_runs([dying, *others], store, pool, train) == {}
    after = results(store)
    lost = sum(after[run] != record for run, record in before.items()) + 2 - len(before)
    tally("a kernel that dies", lost=lost, equal=after == undisturbed(tmp_path / "in peace", specs(3)))
