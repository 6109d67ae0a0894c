"Where a command takes its files from: a relative folder of data, a repository around the checkout, a long TMPDIR."

import os
import subprocess
from pathlib import Path

import pytest

from disentangle_repro.core.files import data_folder
from disentangle_repro.lab.runs.engine import kernel_manager
from disentangle_repro.train.store import git_commit


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    "An unpacked archive in somebody's repository."
    for command in ("init -q", "-c user.name=a -c user.email=a@b commit -q --allow-empty -m dissertation"):
        subprocess.run(["git", "-C", tmp_path, *command.split()], check=True)
    (tmp_path / "unpacked" / "nbs" / "lab" / "runs").mkdir(parents=True)
    (tmp_path / "unpacked" / "settings.ini").write_text("lib_name = disentangle_repro\n")
    monkeypatch.chdir(tmp_path / "unpacked")
    return tmp_path / "unpacked"


OF_A_HOOK = [{}, {"GIT_DIR": ".git"}, {"GIT_INDEX_FILE": ".git/none"}, {"GIT_OBJECT_DIRECTORY": ".git/none"}]


@pytest.mark.parametrize("of_a_hook", OF_A_HOOK)
def test_the_commit_of_a_repository_around_the_checkout_is_not_ours(of_a_hook, checkout, monkeypatch):
    "Nor is that of the repository whose hook has called us."
    for name, path in of_a_hook.items():
        monkeypatch.setenv(name, str(checkout.parent / path))
    assert git_commit() is None
    (checkout.parent / "settings.ini").write_text("lib_name = disentangle_repro\n")
    monkeypatch.chdir(checkout.parent)
    assert len(git_commit()) == 40


def test_a_relative_folder_of_data_is_the_same_for_a_kernel(checkout, monkeypatch):
    monkeypatch.setenv("DISENTANGLE_DATA", "my data")
    of_command = data_folder()
    monkeypatch.chdir(checkout / "nbs" / "lab" / "runs")
    assert data_folder() == of_command == checkout / "my data"
    monkeypatch.setenv("DISENTANGLE_DATA", "/elsewhere")
    assert str(data_folder()) == "/elsewhere"
    monkeypatch.setenv("DISENTANGLE_DATA", "~/data")  # as from a file of variables, which no shell has read
    assert data_folder() == Path.home() / "data"


@pytest.mark.parametrize("length", [40, 81, 82, 200])
def test_a_socket_has_a_name_that_fits(length, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/tmp/" + "x" * (length - 5))
    assert len(os.fsencode(f"{kernel_manager()().ip}-5")) <= 107
