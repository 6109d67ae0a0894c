"benchmarks/gpu, the first hour of a GPU, tried without one: its wheels, what it takes along, a part as a whole."

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import torch
from gpu import carry
from wheels import needed

from disentangle_repro.core.device import seeded
from disentangle_repro.core.errors import OutOfTime
from disentangle_repro.qlae import QLAE
from disentangle_repro.train import Training, fit, make_optimizer

ROOT = Path(__file__).parents[2]
HOUR = ROOT / "benchmarks" / "gpu" / "hour.py"
RUN = Path("paper_tables", "runs", "qlae-qlae-shapes3d-1")


def listed(name: str) -> list[str]:
    lines = HOUR.with_name(name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_the_wheels_are_what_is_needed_beside_torch_at_known_versions():
    names = [*listed("wheels.txt"), *listed("wheels_large.txt")]
    assert sorted(names) == sorted(needed((ROOT / "settings.ini").read_text(encoding="utf-8")))
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").open()}
    assert {*names} <= pinned


def new_training() -> Training:
    with seeded(0):
        model = QLAE(n_latents=2, width=0.125)
    images = torch.randint(256, (16, 64, 64, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    optimizer = make_optimizer(model, learning_rate=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.1)
    return Training(model, optimizer, images, batch_size=2, seed=0)


def trained(folder: Path, deadline: float | None = None, best: int = 2) -> Training:
    "Six updates with a probe at each, of which the one after `best` is kept; a deadline is a number of updates."
    training = new_training()
    how = {"checkpoint": folder / "checkpoint.pt", "kept": folder / "kept.pt", "log_every": 1, "probe_every": 1}
    how |= {"probe": lambda model: {"psnr": 0.0}, "make_criterion": lambda curve: len(curve) == best}
    fit(training, 6, deadline=deadline, clock=lambda: float(training.updates), progress=False, **how)
    return training


def test_an_unfinished_training_goes_on_elsewhere_as_if_nothing_had_been(tmp_path, recwarn):
    (there := tmp_path / "there" / RUN).mkdir(parents=True)
    (here := tmp_path / "here" / RUN).mkdir(parents=True)
    (whole := tmp_path / "whole").mkdir()
    with pytest.raises(OutOfTime, match="4 of 6"):
        trained(there, deadline=4.5)
    full = sum(path.stat().st_size for path in there.glob("*.pt"))
    size = full // 3
    assert carry.pack(tmp_path / "there", tmp_path / "out", files=3, size=size) == []
    parts = sorted((tmp_path / "out").iterdir())
    assert len(parts) == 3 and all(part.stat().st_size <= size for part in parts)
    assert len(carry.take(tmp_path / "out", tmp_path / "here")) == 2
    assert (here / "checkpoint.pt").read_bytes() == (there / "checkpoint.pt").read_bytes()
    for ours, expected in zip(trained(here).model.parameters(), trained(whole).model.parameters(), strict=True):
        assert ours.equal(expected)
    ours, expected = (torch.load(folder / "kept.pt") for folder in (here, whole))
    assert all(ours["model"][name].equal(tensor) for name, tensor in expected["model"].items())
    assert not recwarn.list


def test_what_is_newest_is_taken_even_if_it_is_the_best_so_far(tmp_path):
    "As where a process was killed after it had saved the best so far: its averages are needed to go on."
    (folder := tmp_path / RUN).mkdir(parents=True)
    with pytest.raises(OutOfTime):
        trained(folder, deadline=2.5, best=2)
    earlier = torch.load(folder / "checkpoint.pt") | {"updates": 1}
    torch.save(earlier, folder / "checkpoint.pt")
    carry.pack(tmp_path, tmp_path / "out", files=1, size=2**24)
    (tmp_path / "here").mkdir()
    assert carry.take(tmp_path / "out", tmp_path / "here") == [str(RUN / "kept.pt")]
    assert torch.load(tmp_path / "here" / RUN / "kept.pt")["optimizer"]["state"]


def test_records_go_before_checkpoints_and_what_has_no_room_is_named(tmp_path):
    done, begun = tmp_path / RUN, tmp_path / RUN.with_name("qlae-ae-shapes3d-1")
    for folder in (done, begun):
        folder.mkdir(parents=True)
    (done / "run.json").write_text('{"scores": 1}')
    (done / "checkpoint.pt").write_bytes(b"of a finished run")
    with pytest.raises(OutOfTime):
        trained(begun, deadline=4.5)
    left_out = carry.pack(tmp_path, tmp_path / "out", files=1, size=2**15)
    assert {Path(name).name for name in left_out} == {"checkpoint.pt", "kept.pt"}
    assert {Path(name).parent.name for name in left_out} == {begun.name}
    assert carry.take(tmp_path / "out", tmp_path / "fresh") == [str(RUN / "run.json")]
    (here := tmp_path / "here" / RUN).mkdir(parents=True)
    (here / "run.json").write_text("newer")
    assert carry.take(tmp_path / "out", tmp_path / "here") == [] and (here / "run.json").read_text() == "newer"


def test_of_two_unfinished_trainings_the_latest_goes_where_there_is_room_for_one(tmp_path):
    earlier, later = (tmp_path / RUN.with_name(f"qlae-qlae-shapes3d-{number}") for number in (1, 2))
    for folder in (earlier, later):
        folder.mkdir(parents=True)
        with pytest.raises(OutOfTime):
            trained(folder, deadline=4.5)
    os.utime(earlier / "checkpoint.pt", (0, 0))
    os.utime(earlier / "kept.pt", (0, 0))
    size = sum(path.stat().st_size for path in later.glob("*.pt"))
    left_out = carry.pack(tmp_path, tmp_path / "out", files=1, size=size)
    assert {Path(name).parent.name for name in left_out} == {earlier.name}
    assert [path.stat().st_size <= size for path in (tmp_path / "out").iterdir()] == [True]
    assert {Path(name).parent.name for name in carry.take(tmp_path / "out", tmp_path / "here")} == {later.name}


def test_a_tar_that_points_elsewhere_is_refused(tmp_path):
    (out := tmp_path / "out").mkdir()
    with tarfile.open(out / "carried.tar.0", "w") as tar:
        tar.addfile(tarfile.TarInfo("../outside"))
    with pytest.raises(tarfile.ReadError, match="outside"):
        carry.take(out, tmp_path / "here")
    assert not (tmp_path / "outside").exists()


def project(folder: Path) -> Path:
    "A checkout with a store and data of its own and everything else of this one."
    (folder / "paper_tables").mkdir(parents=True)
    (folder / "settings.ini").write_bytes((ROOT / "settings.ini").read_bytes())
    for name in ("nbs", "disentangle_repro", "paper_tables/reported", "paper_tables/claims.yaml"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def hour(folder: Path, monkeypatch, *options) -> subprocess.CompletedProcess:
    monkeypatch.setenv("DISENTANGLE_DATA", str(folder / "data"))
    command = [sys.executable, HOUR, *map(str, options), "--device", "cpu", "--tiny"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_a_wheel_whose_distribution_is_missing_is_unpacked(tmp_path, monkeypatch):
    (wheels := tmp_path / "wheels").mkdir()
    for name in ("surely_missing", "torch"):
        with zipfile.ZipFile(wheels / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}.py", "raise ImportError")
            wheel.writestr(f"{name}-1.0.dist-info/METADATA", f"Name: {name}\nVersion: 1.0\n")
    given = ("--part", 2, "--out", tmp_path / "out", "--wheels", wheels, "--minutes", 0.5)
    done = hour(folder := project(tmp_path / "project"), monkeypatch, *given)
    assert "unpacked 1 wheels" in done.stdout and done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in (folder / "build/gpu/site").iterdir()} == {
        "surely_missing.py", "surely_missing-1.0.dist-info"
    }  # fmt: skip


def test_outside_a_checkout_nothing_is_begun(tmp_path, monkeypatch):
    done = hour(tmp_path, monkeypatch, "--part", 2, "--out", "out")
    assert done.returncode == 2 and "run it in the checkout's root" in done.stderr and not [*tmp_path.iterdir()]


@pytest.mark.whole
def test_the_first_part_measures_and_trains_and_hands_on(tmp_path, monkeypatch):
    here, out = project(tmp_path / "here"), tmp_path / "out"
    done = hour(here, monkeypatch, "--part", 1, "--out", out, "--minutes", 9)
    assert done.returncode == 0 and "failed: nothing" in done.stdout, done.stdout + done.stderr
    rows = [json.loads(line) for line in (here / "build/gpu/steps_tiny.jsonl").read_text().splitlines()]
    ended = {row["cell"] for row in rows if row.get("ms", 0) > 0}
    assert len(ended) == 21 and ended == {row["cell"] for row in rows} - {"rates"}
    assert not [row for row in rows if row.get("problem")]
    there = project(tmp_path / "there")
    done = hour(there, monkeypatch, "--part", 2, "--from", out, "--out", tmp_path / "next", "--minutes", 9)
    assert done.returncode == 0 and "All runs are done" in done.stdout, done.stdout + done.stderr
    records = {path.parent.name for path in here.glob("paper_tables/runs/*/run.json")}
    assert len(records) == 2
    for run in records:  # taken along, so not done again
        names = (Path("paper_tables/runs", run, "run.json"), Path("paper_tables/runs", run, "run.ipynb"))
        assert all((here / name).read_bytes() == (there / name).read_bytes() for name in names)
