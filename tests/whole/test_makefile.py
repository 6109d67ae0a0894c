"What `make` does around the commands, with commands that only note that they were called."

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit 0
mkdir -p .venv/bin
printf '#!/bin/sh\\necho "$@" >> log; test ! -e offline || { echo no network; exit 1; }\\n' > .venv/bin/python
printf '#!/bin/sh\\necho "$@" >> log; test "$1" = report || exit ${STATUS:-0}\\n' > .venv/bin/disentangle-repro
chmod +x .venv/bin/*
"""


@pytest.fixture
def checkout(tmp_path):
    shutil.copy(PROJECT / "Makefile", tmp_path)
    for name in ("constraints.txt", "settings.ini", "setup.py"):
        (tmp_path / name).touch()
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def make(checkout, *arguments, **environment):
    command = ["make", "PYTHON=./python", *arguments]
    known = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    done = subprocess.run(command, cwd=checkout, env=known | environment, capture_output=True, text=True)
    log = checkout / "log"
    called = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return done, called


def test_tables_are_made_without_what_tests_need_and_each_step_is_a_line(checkout):
    done, (install, *commands) = make(checkout, "tables")
    assert install.endswith("--editable .[tables,dask,report]") and "--constraint constraints.txt" in install
    assert [line.split()[0] for line in commands] == ["tables", "report"]
    first, *steps = done.stdout.splitlines()
    assert first.startswith("Setting up .venv") and [line.split()[0] for line in steps] == ["Python", "Packages"]
    assert all(line.endswith(" s") and " ... " in line for line in steps)
    assert make(checkout, "tables")[1] == commands, "installed twice"


def test_an_installation_that_fails_shows_why_and_is_done_again(checkout):
    (checkout / "offline").touch()
    done, called = make(checkout, "tables")
    assert done.returncode and "no network" in done.stdout and len(called) == 1
    (checkout / "offline").unlink()
    assert len(make(checkout, "tables")[1]) == 3


@pytest.mark.parametrize("status, report", [("0", True), ("1", True), ("2", False)])
def test_a_request_that_is_refused_leaves_the_report_as_it_is(checkout, status, report):
    make(checkout, "tables")
    done, called = make(checkout, "tables", "PAPERS=qlea", STATUS=status)
    assert bool(done.returncode) == (status != "0") and called[0].startswith("tables --papers qlea")
    assert ("report" in called) == report


def test_a_mistyped_variable_is_refused_before_anything_is_done(checkout):
    done, called = make(checkout, "tables", "PAPER=qlae")
    assert done.returncode and "PAPER is no variable of this Makefile" in done.stderr and not called
    assert not (checkout / ".venv").exists()
