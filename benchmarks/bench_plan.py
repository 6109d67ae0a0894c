"""How near the probe of `make plan` comes to a real training: python benchmarks/bench_plan.py PAPER MODEL DATASET."""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import joblib
import torch

from disentangle_repro.core.device import device_name, pick_device
from disentangle_repro.core.engine import n_workers
from disentangle_repro.core.hyperparameters import merged
from disentangle_repro.core.scale import SCALES
from disentangle_repro.data.load import GRIDS, load_dataset
from disentangle_repro.papers import PAPERS
from disentangle_repro.plan.probe import probe_training
from disentangle_repro.plan.request import Request
from disentangle_repro.plan.specs import run_spec
from disentangle_repro.runs.assemble import assemble
from disentangle_repro.runs.slots import training_scenes
from disentangle_repro.train.loop import fit
from disentangle_repro.train.speed import keep_freed_memory


def parser():
    """Which training, how long, and on how many rendered images."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("paper", choices=PAPERS)
    options.add_argument("model")
    options.add_argument("dataset")
    options.add_argument("--scale", choices=SCALES, default="paper")
    options.add_argument("--updates", type=int, default=500)
    options.add_argument("--images", type=int, default=1_000, help="rendered for this; the probe needs none")
    return options


def trained(spec, images, updates):
    """Seconds of an update in a real training, by its own clock and by the one on the wall, checkpoints included."""
    training = assemble(spec, images)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        fit(training, updates, log_every=10 if updates < 1_000 else 50, checkpoint=Path(folder) / "checkpoint.pt")
        on_the_wall = time.perf_counter() - start
    return training.seconds / updates, on_the_wall / updates


def main():
    options, device = parser().parse_args(), pick_device()
    if device.type == "cpu":
        torch.set_num_threads(max(1, joblib.cpu_count() // n_workers()))
    keep_freed_memory()
    spec = run_spec(options.paper, options.model, options.dataset, Request(SCALES[options.scale]))
    probe = probe_training(spec, device)
    print(f"{spec.id} on {device_name(device)}")
    print(f"probe: {1e3 * probe.seconds:.2f} ms an update, measured with a batch of {probe.batch_size}", flush=True)
    load = load_dataset if options.dataset in GRIDS else training_scenes
    images = load(options.dataset, "rendered", n=options.images, device=device).images
    spec = replace(spec, hyperparameters=merged(spec.hyperparameters, {"training": {"steps": options.updates}}))
    clock, wall = trained(spec, images, options.updates)
    print(f"real: {1e3 * clock:.2f} ms an update in {options.updates} updates, {1e3 * wall:.2f} with checkpoints")
    print(f"probe / real: {probe.seconds / clock:.2f}; with checkpoints {probe.seconds / wall:.2f}")


if __name__ == "__main__":
    main()
