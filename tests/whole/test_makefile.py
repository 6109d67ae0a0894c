"What `make` does around the commands, with commands that only note that they were called."

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit 0
mkdir -p .venv/bin
cat > .venv/bin/python <<'END'
#!/bin/sh
[ "$1" = -c ] && exit 0
echo "$@" >> log; sleep ${SLOWLY:-0}; test ! -e offline || { echo no network; exit 1; }
END
printf '#!/bin/sh\\necho "$@" >> log; test "$1" = report || exit ${STATUS:-0}\\n' > .venv/bin/disentangle-repro
chmod +x .venv/bin/*
sleep ${SLOWLY:-0}; touch .venv/bin/pip
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


@pytest.mark.parametrize("status, report", [("0", True), ("1", True), ("2", False), ("130", False)])
def test_a_request_that_is_refused_or_interrupted_leaves_the_report_as_it_is(checkout, status, report):
    make(checkout, "tables")
    done, called = make(checkout, "tables", "PAPERS=qlea", STATUS=status)
    assert bool(done.returncode) == (status != "0") and called[0].startswith("tables --papers qlea")
    assert ("report" in called) == report


@pytest.mark.parametrize("target, given", [
    ("tables", "PAPER=qlae"), ("tables", "DEVICE=h100"), ("data", "SOURCE=official"), ("plan", "ENGINE=local:2"),
    ("verify", "SCALE=smoke"), ("report", "PAPERS=qlae"), ("minutes", "PAPERS=qlae"), ("test", "N=3"),
])  # fmt: skip
def test_a_variable_that_a_target_does_not_read_is_refused_before_anything_is_done(target, given, checkout):
    done, called = make(checkout, target, given)
    name = given.partition("=")[0]
    assert done.returncode and f"make {target} does not read {name}. It reads PYTHON" in done.stderr and not called
    assert not (checkout / ".venv").exists()


def test_what_is_given_reaches_the_command(checkout):
    called = make(checkout, "tables", "WORKERS=3", "CHECKPOINTS=1")[1]
    assert "--workers 3 --keep-checkpoints" in called[1]
    assert "--workers 3" in make(checkout, "plan", "WORKERS=3")[1][0]


def test_two_first_calls_share_one_installation(checkout):
    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(make, checkout, target, SLOWLY="1") for target in ("plan", "report")]
    done = [future.result()[0] for future in results]
    assert [result.returncode for result in done] == [0, 0], done
    assert sum(result.stdout.count("Packages") for result in done) == 1


def test_an_interrupted_installation_begins_again(checkout):
    (checkout / ".venv/bin").mkdir(parents=True)
    (checkout / ".venv/bin/python").touch()
    assert make(checkout, "plan")[0].returncode == 0


@pytest.mark.parametrize("python, said", [
    (f'#!/bin/sh\nPYTHONPATH={PROJECT} exec {sys.executable} "$@"\n', f"It belongs to another checkout: {PROJECT}"),
    ("#!/nowhere/python\n", ""),
])  # fmt: skip
def test_an_environment_that_was_copied_or_whose_python_is_gone_is_noticed(python, said, checkout):
    make(checkout, "plan")
    (checkout / ".venv/bin/python").write_text(python)
    done, called = make(checkout, "plan")
    assert done.returncode and not called and said in done.stderr
    assert f"{checkout}/.venv cannot be used: 'rm -r .venv', then make again." in done.stdout
