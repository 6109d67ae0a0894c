"A report is replaced by the next one: whenever that is interrupted, and whatever cannot be removed, one is there."

import os
import shutil
from pathlib import Path

import pytest

from disentangle_repro.lab.report import in_place_of


def replace(report, text):
    with in_place_of(report) as new:
        for name in ("index.html", "runs/1.html", "runs/2.html"):
            (new / name).parent.mkdir(exist_ok=True)
            (new / name).write_text(text)


def texts(report):
    return {path.read_text() for path in report.rglob("*.html")}


@pytest.mark.parametrize("step", range(1, 12))
@pytest.mark.parametrize("of", ["rename", "unlink", "rmdir"])
def test_a_process_that_is_killed_leaves_a_whole_report(tmp_path, of, step):
    report = tmp_path / "report"
    replace(report, "first")
    if not (child := os.fork()):
        calls, do = [], {name: getattr(os, name) for name in ("rename", "unlink", "rmdir")}

        def killed(*arguments, **how):
            calls.append(arguments)
            if len(calls) == step:
                os._exit(0)
            return do[of](*arguments, **how)

        setattr(os, of, killed)
        try:
            replace(report, "second")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert not report.exists() or texts(report) in ({"first"}, {"second"})
    with pytest.raises(KeyError), in_place_of(report):
        raise KeyError
    assert texts(report) in ({"first"}, {"second"})
    replace(report, "third")
    assert texts(report) == {"third"} and {path.name for path in tmp_path.iterdir()} == {"report", ".report.lock"}


def test_a_report_that_cannot_be_removed_is_replaced(tmp_path, monkeypatch):
    report, remove = tmp_path / "report", shutil.rmtree

    def but_for_one(folder, **how):
        if folder.exists():
            remove(folder)
            (folder / "of somebody else").mkdir(parents=True)

    monkeypatch.setattr(shutil, "rmtree", but_for_one)
    for text in ("first", "second", "third"):
        replace(report, text)
        assert texts(report) == {text}


def test_an_error_between_the_renames_gives_the_report_its_name_back(tmp_path, monkeypatch):
    report, rename = tmp_path / "report", Path.rename
    replace(report, "first")

    def full(path, target):
        if path.name.endswith(".new"):
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="No space"):
        replace(report, "second")
    assert texts(report) == {"first"}
