"A run that is killed and taken up again ends with the numbers of an undisturbed one."

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from disentangle_repro.core.device import seeded
from disentangle_repro.factorqvae import FactorQVAE
from disentangle_repro.qlae import QLAE
from disentangle_repro.train import RunSpec, Store, Training, fit, make_optimizer
from disentangle_repro.train.loop import Replayed
from disentangle_repro.train.optimizer import SCHEDULES

HYPERPARAMETERS = {
    "width": 0.125, "updates": 300, "batch_size": 8, "images": 300, "evaluation_samples": 200,
    "learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "clip": None, "decay_biases": True,
    "n_values": 10, "quantize": 0.01, "commit": 0.01,
}  # fmt: skip
SPEC = RunSpec("qlae", "qlae", "shapes3d", "rendered", "smoke", 3, "paper", HYPERPARAMETERS)
ROOT = Path(__file__).parents[1]


def start_run(folder: Path) -> subprocess.Popen:
    "The run in a process group of its own, as `make tables` does it."
    code = f"""
from pathlib import Path
from disentangle_repro.tables.runner import execute_run
from disentangle_repro.train.store import RunSpec, Store
execute_run(RunSpec(**{SPEC.__dict__!r}), Store(Path({str(folder / "runs")!r}), Path({str(folder / "results")!r})))
"""
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, start_new_session=True, stderr=subprocess.DEVNULL)


def wait_for(condition, process: subprocess.Popen, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < end, "the run did not come so far"
        time.sleep(0.01)


def updates_in(checkpoint: Path) -> int:
    return torch.load(checkpoint)["updates"] if checkpoint.exists() else 0


def record(folder: Path) -> dict:
    return json.loads((folder / "runs" / SPEC.id / "run.json").read_text())


def test_a_run_killed_twice_ends_as_an_undisturbed_one(tmp_path):
    disturbed, undisturbed = tmp_path / "disturbed", tmp_path / "undisturbed"
    checkpoint = disturbed / "runs" / SPEC.id / "checkpoint.pt"
    for updates in (1, 100):
        process = start_run(disturbed)
        wait_for(lambda at_least=updates: updates_in(checkpoint) >= at_least, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert not (checkpoint.parent / "run.json").exists()
        assert updates_in(checkpoint) < 300, "killed too late to show anything"
    for folder in (disturbed, undisturbed):
        assert start_run(folder).wait() == 0
    for part in ("scores", "probes", "nmi", "active"):
        assert record(disturbed)[part] == record(undisturbed)[part]
    assert not (disturbed / "results").exists(), "a rehearsal was kept"


def test_a_damaged_checkpoint_is_said_to_be_so_and_put_aside(tmp_path):
    checkpoint = tmp_path / "checkpoint.pt"
    checkpoint.write_bytes(b"PK\x03\x04 not a checkpoint")
    with pytest.warns(UserWarning, match="checkpoint.pt: is not a whole checkpoint.*begins anew"):
        fit(new_training("cpu"), 1, checkpoint=checkpoint, progress=False)
    assert updates_in(checkpoint) == 1 and checkpoint.with_name("checkpoint.pt.damaged").exists()


def new_training(device: str, make: type = QLAE) -> Training:
    with seeded(0):
        model = make(n_latents=4, width=0.125).to(device)
    images = torch.randint(256, (64, 64, 64, 3), dtype=torch.uint8, device=device, generator=torch.Generator(device))
    optimizer = make_optimizer(model, learning_rate=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.1)
    return Training(model, optimizer, images, batch_size=8, seed=0, schedule=SCHEDULES["cosine"])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: replays recorded updates")
@pytest.mark.parametrize("make", [QLAE, FactorQVAE])
def test_replayed_updates_are_updates(make):
    "Also where two losses take turns, and the learning rate and the temperature fall."
    called, replayed = new_training("cuda", make), new_training("cuda", make)
    called.total = replayed.total = 20
    step = Replayed(replayed)
    for _ in range(20):
        called.prepare()
        torch.testing.assert_close(step()["loss"].clone(), called.update()["loss"], rtol=1e-3, atol=1e-5)


def test_images_and_model_on_different_devices_are_refused():
    training = new_training("cpu")
    with pytest.raises(ValueError, match="images are on meta but model is on cpu"):
        Training(training.model, training.optimizer, training.images.to("meta"), batch_size=8, seed=0)


def test_a_store_survives_a_folder_it_cannot_trust(tmp_path):
    store = Store(tmp_path / "runs", tmp_path / "results")
    (store.folder(SPEC) / ".run.json.1.part").write_text('{"scores": {"info')
    assert store.record(SPEC) is None
    store.finish(SPEC, {"scores": {"infom": 0.5}})
    assert store.record(SPEC)["scores"]["infom"] == 0.5
