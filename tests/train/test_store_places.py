"Where a command takes its files from: a relative folder of data, a repository around the checkout, a long TMPDIR."

import subprocess
from pathlib import Path

import pytest

from disentangle_repro.core.files import data_folder
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


def test_no_program_that_a_repository_names_is_started(checkout, monkeypatch):
    repository = checkout.parent
    (repository / "settings.ini").write_text("lib_name = disentangle_repro\n")
    (repository / "monitor").write_text(f"#!/bin/sh\ntouch {repository}/started\n")
    (repository / "monitor").chmod(0o755)
    subprocess.run(["git", "-C", repository, "config", "core.fsmonitor", repository / "monitor"], check=True)
    subprocess.run(["git", "-C", repository, "add", "settings.ini"], check=True)
    (repository / "started").unlink(missing_ok=True)
    monkeypatch.chdir(repository)
    assert git_commit().endswith("+changes") and not (repository / "started").exists()


def test_a_relative_folder_of_data_is_the_same_for_a_notebook(checkout, monkeypatch):
    monkeypatch.setenv("DISENTANGLE_DATA", "my data")
    of_command = data_folder()
    monkeypatch.chdir(checkout / "nbs" / "lab" / "runs")
    assert data_folder() == of_command == checkout / "my data"
    monkeypatch.setenv("DISENTANGLE_DATA", "/elsewhere")
    assert str(data_folder()) == "/elsewhere"
    monkeypatch.setenv("DISENTANGLE_DATA", "~/data")  # as from a file of variables, which no shell has read
    assert data_folder() == Path.home() / "data"
