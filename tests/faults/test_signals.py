"A command is interrupted as people and queues do it, while it trains."

import os
import signal
import subprocess
import time

import pytest
from dask_by_hand import start_dask
from project import Project, family, survivors
from test_commands import end_dask, same

from disentangle_repro.train.loop import read_state

pytestmark = pytest.mark.whole
SLOWLY = """
def prepare_slowly(prepare=training.prepare):
    time.sleep(0.05)
    prepare()

training.prepare = prepare_slowly
"""


def to_group(process: subprocess.Popen) -> None:
    "As a terminal does at Ctrl-C."
    os.killpg(process.pid, signal.SIGINT)


def to_everybody(process: subprocess.Popen) -> None:
    "As SLURM does at the end of a job."
    for one in family(process):
        one.send_signal(signal.SIGTERM)


def terminal_closed(process: subprocess.Popen) -> None:
    "As a terminal, or the ssh connection that it is in, when it is closed."
    os.killpg(process.pid, signal.SIGHUP)


KINDS = [("local", to_group), ("dask", to_group), ("local", to_everybody), ("local:2", terminal_closed)]


@pytest.mark.parametrize(("engine", "interrupt"), KINDS)
def test_an_interrupted_training_goes_on_from_a_checkpoint(engine, interrupt, undisturbed, tally, tmp_path):
    project: Project = undisturbed[0].another(tmp_path / "project")
    project.add_cell("run.ipynb", SLOWLY, after="model = training.model")
    started, address = start_dask(project.folder, 2) if engine == "dask" else ([], engine)
    process = project.start("--engine", address)
    while len(list(project.store.runs.glob("*/kept.pt"))) < 1:
        assert process.poll() is None, project.said()
        time.sleep(0.1)
    everybody, start = family(process), time.monotonic()
    interrupt(process)
    try:
        assert process.wait(120) == 130, project.said()
    finally:
        end_dask(started)
    seconds = time.monotonic() - start
    assert not survivors(everybody)
    made = [read_state(path)["updates"] for path in project.store.runs.glob("*/checkpoint.pt")]
    print(f"{seconds:.1f} s", made, project.said())
    assert made and seconds < 60 and "Traceback" not in project.said()
    assert f"Interrupted: {2 - len(made)} runs are not begun" in project.said().splitlines()[-1]
    assert not list(project.store.runs.glob("*/failure.json"))
    believed = len(project.half_written())
    assert project.make() == 0, project.said()
    tally(f"{interrupt.__doc__} {engine}", believed=believed, equal=same(project, undisturbed))
