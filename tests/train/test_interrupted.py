"What a training and a store do with what an interruption leaves; runs that are killed are in tests/faults."

import signal
import time
from copy import deepcopy
from pathlib import Path

import pytest
import torch

from disentangle_repro.core.device import seeded
from disentangle_repro.core.errors import DataError
from disentangle_repro.models import create_model
from disentangle_repro.qlae import QLAE
from disentangle_repro.train import Training, fit, fit_images, make_optimizer
from disentangle_repro.train.loop import CudaGraphStep, load, save
from disentangle_repro.train.optimizer import SCHEDULES


def updates_in(checkpoint: Path) -> int:
    return torch.load(checkpoint)["updates"] if checkpoint.exists() else 0


def new_training(device: str) -> Training:
    with seeded(0):
        model = QLAE(n_latents=4, width=0.125).to(device)
    images = torch.randint(256, (64, 64, 64, 3), dtype=torch.uint8, device=device, generator=torch.Generator(device))
    optimizer = make_optimizer(model, learning_rate=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.1)
    return Training(model, optimizer, images, batch_size=8, seed=0, schedule=SCHEDULES["cosine"])


@pytest.mark.parametrize("signals", ["SIGINT", "SIGTERM", "SIGTERM SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_training_with_a_checkpoint(signals, tmp_path):
    "At the end of the update; the training that goes on is the one that was not interrupted."
    interrupted, prepare = new_training("cpu"), Training.prepare

    def prepare_and_signal():
        if interrupted.updates == 13:
            for name in signals.split():
                signal.raise_signal(signal.Signals[name])
        prepare(interrupted)

    interrupted.prepare, how = prepare_and_signal, {"checkpoint": tmp_path / "checkpoint.pt", "progress": False}
    with pytest.raises(KeyboardInterrupt, match="14 of 30 updates"):
        fit(interrupted, 30, **how)
    assert updates_in(how["checkpoint"]) == 14 and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    curve = fit(new_training("cpu"), 30, **how)
    assert curve == fit(new_training("cpu"), 30, progress=False)


def test_a_second_ctrl_c_ends_a_training_at_once(tmp_path):
    training = new_training("cpu")
    training.prepare = lambda: [signal.raise_signal(signal.SIGINT) for _ in range(2)]
    with pytest.raises(KeyboardInterrupt):
        fit(training, 30, checkpoint=tmp_path / "checkpoint.pt", progress=False)
    assert training.updates == 0 and not list(tmp_path.iterdir())


def test_images_and_model_on_different_devices_are_refused():
    training = new_training("cpu")
    with pytest.raises(ValueError, match="images are on meta but model is on cpu"):
        Training(training.model, training.optimizer, training.images.to("meta"), batch_size=8, seed=0)


@pytest.mark.gpu
def test_a_resumed_training_is_replayed_with_the_learning_rate_of_each_update(tmp_path):
    whole, stopped, resumed = (new_training("cuda") for _ in range(3))
    whole.total = stopped.total = resumed.total = 40
    for training in (whole, stopped):
        step = CudaGraphStep(training)
        for _ in range(10):
            step()
    save(stopped, tmp_path / "checkpoint.pt")
    load(resumed, tmp_path / "checkpoint.pt")
    steps = CudaGraphStep(whole), CudaGraphStep(resumed)
    for _ in range(30):
        losses = [step()["loss"].clone() for step in steps]
        torch.testing.assert_close(*losses, rtol=1e-3, atol=1e-5)
    rates = [float(training.optimizer.param_groups[0]["lr"]) for training in (whole, resumed)]
    assert rates[0] == pytest.approx(rates[1], rel=1e-6)


@pytest.mark.parametrize(("name", "scheduled"), [("qvae", True), ("qlae", False)])
def test_a_longer_training_from_the_checkpoint_of_a_shorter_one_is_equal_or_warns(tmp_path, recwarn, name, scheduled):
    images = torch.randint(256, (16, 32, 32, 3), dtype=torch.uint8)
    how = {"batch_size": 4, "log_every": 1, "progress": False}
    with seeded(0):
        begun = create_model(name, "shapes3d", width=0.1, image_size=32)
    whole = deepcopy(begun)
    for updates in (2, 4):
        fit_images(begun, images, updates, checkpoint=tmp_path / "checkpoint.pt", **how)
    fit_images(whole, images, 4, **how)
    differs = any(not a.equal(b) for a, b in zip(begun.parameters(), whole.parameters(), strict=True))
    warned = ["of a training of 2 updates, and 4 are asked for" in str(caught.message) for caught in recwarn.list]
    assert differs is scheduled and warned == ([True] if scheduled else [])


def carried(checkpoint: Path) -> bytes:
    "Make a checkpoint that of a GPU, whose random generator has a state of 16 bytes; what is in the file then."
    torch.save(torch.load(checkpoint) | {"generator": torch.zeros(16, dtype=torch.uint8)}, checkpoint)
    return checkpoint.read_bytes()


def test_a_completed_training_is_scored_on_another_kind_of_device(tmp_path, recwarn):
    checkpoint, kept = tmp_path / "checkpoint.pt", tmp_path / "kept.pt"
    how = {"log_every": 1, "checkpoint": checkpoint, "progress": False, "kept": kept, "probe_every": 1}
    how["probe"] = lambda model: {"psnr": {1: 9.0, 2: 8.5}.get(training.updates, 0.0)}
    curve = fit(training := new_training("cpu"), 3, **how)
    for path in (checkpoint, kept):
        carried(path)
    there = new_training("cpu")
    assert fit(there, 3, **how) == curve and there.updates == 3
    for ours, theirs in zip(training.model.parameters(), there.model.parameters(), strict=True):
        assert ours.equal(theirs)
    load(there, kept)
    assert there.updates == 2
    assert not recwarn.list and sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.pt", "kept.pt"]


def test_an_unfinished_training_of_another_kind_of_device_is_refused_and_left_as_it_is(tmp_path, recwarn):
    how = {"log_every": 1, "checkpoint": tmp_path / "checkpoint.pt", "progress": False}
    fit(new_training("cpu"), 1, **how)
    content = carried(how["checkpoint"])
    with pytest.raises(DataError, match="checkpoint.pt: holds 1 of 2 updates.*another kind of device.*finish it there"):
        fit(new_training("cpu"), 2, **how)
    assert how["checkpoint"].read_bytes() == content and [*tmp_path.iterdir()] == [how["checkpoint"]]
    assert not recwarn.list


def saved_at(checkpoint: Path, updates: int, seconds_of_a_point: float, **how) -> list[int]:
    "After which updates `checkpoint` was written, on a clock that goes on at every point of the curve."
    found, training, now = [], new_training("cpu"), [0.0]

    def look(model) -> dict[str, float]:
        now[0] += seconds_of_a_point
        found.append(updates_in(checkpoint))
        return {}

    how |= {"clock": lambda: now[0], "probe": look, "probe_every": 1, "progress": False}
    fit(training, updates, log_every=1, checkpoint=checkpoint, **how)
    return sorted({*found, updates_in(checkpoint)} - {0})


def test_a_checkpoint_is_written_every_five_minutes_and_at_the_end(tmp_path):
    assert saved_at(tmp_path / "slow.pt", 8, 100.0) == [3, 6, 8]
    assert saved_at(tmp_path / "quick.pt", 8, 1.0) == [8]
    assert saved_at(tmp_path / "more.pt", 8, 1.0, checkpoint_seconds=2.0) == [2, 4, 6, 8]
    assert saved_at(tmp_path / "set back.pt", 8, -100.0) == [3, 6, 8], "a clock that runs backwards"


class PowerCut(Exception):
    pass


def test_a_training_goes_on_from_a_kept_moment_that_is_later_than_its_checkpoint(tmp_path):
    checkpoint, kept, begun = tmp_path / "checkpoint.pt", tmp_path / "kept.pt", []
    how = {"log_every": 1, "checkpoint": checkpoint, "kept": kept, "probe_every": 1, "progress": False}
    whole = new_training("cpu")
    fit(whole, 5, log_every=1, probe=lambda model: {"psnr": 20.0}, probe_every=1, progress=False)
    cut, resumed = new_training("cpu"), new_training("cpu")

    def cut_at_four(model):
        if cut.updates == 4:
            raise PowerCut
        return {"psnr": 20.0}

    with pytest.raises(PowerCut):
        fit(cut, 5, probe=cut_at_four, clock=lambda: cut.updates, checkpoint_seconds=2, **how)
    assert (updates_in(checkpoint), updates_in(kept)) == (2, 3)
    curve = fit(resumed, 5, probe=lambda model: begun.append(resumed.updates) or {"psnr": 20.0}, **how)
    assert begun == [4, 5] and curve == whole.curve
    for ours, theirs in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert ours.equal(theirs)


def test_processor_time_is_counted_from_process_to_process_and_missing_in_older_checkpoints(tmp_path):
    checkpoint = tmp_path / "checkpoint.pt"
    how = {"log_every": 1, "checkpoint": checkpoint, "progress": False}
    fit(new_training("cpu"), 1, **how)
    state = torch.load(checkpoint)
    assert 0 < state["processor_seconds"] <= time.process_time()
    torch.save(state | {"processor_seconds": 1_000.0}, checkpoint)
    fit(resumed := new_training("cpu"), 2, **how)
    assert resumed.processor_before == 1_000.0 and torch.load(checkpoint)["processor_seconds"] > 1_000.0
    del state["processor_seconds"]
    torch.save(state, checkpoint)
    fit(resumed := new_training("cpu"), 2, **how)
    assert resumed.processor_before == 0.0 and resumed.updates == 2 and [*tmp_path.iterdir()] == [checkpoint]
