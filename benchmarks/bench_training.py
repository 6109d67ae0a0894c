"""How long a step takes: of QLAE at full width; of every kind of network (`--families`).

`make bench` runs the first. `--families` measures processor time of one thread at 32x32 pixels, in fp32 and bf16, the
least of several rounds. `--beside DIR` measures another checkout too, by turns with this one.
"""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch

from disentangle_repro.core.device import device_name, pick_device, seeded
from disentangle_repro.qlae import QLAE
from disentangle_repro.train import Training, make_optimizer
from disentangle_repro.train.loop import CudaGraphStep
from disentangle_repro.train.speed import elapsed, keep_freed_memory, step_operations

BATCH = {"cpu": 32, "cuda": 128}
UPDATES = {"cpu": 20, "cuda": 100}
FAMILIES = {  # paper, model, data set, width, batch
    "qlae": ("qlae", "qlae", "shapes3d", 0.5, 32),
    "psa": ("psa", "psa", "objects_room", 0.5, 16),
    "broadcast": ("asymmetry", "slot_attention-spatial_broadcast-rec", "sprites", 0.5, 16),
    "transformer": ("asymmetry", "transformer-transformer-rec_kl_interact", "sprites", 0.5, 16),
    "monet": ("psa", "monet", "objects_room", 0.5, 16),
    "factorqvae": ("factorqvae", "factorqvae", "shapes3d", 0.25, 32),
    "tripod": ("tripod", "tripod", "shapes3d", 0.25, 32),
}


def family_training(name, precision):
    """A training of that family as the tables make it, at 32x32 pixels, on noise."""
    from disentangle_repro.experiment.hyperparameters import merged
    from disentangle_repro.experiment.scale import SCALES
    from disentangle_repro.lab.plan.cost import noise
    from disentangle_repro.lab.plan.request import Request
    from disentangle_repro.lab.plan.specs import run_spec
    from disentangle_repro.lab.runs.assemble import assemble

    paper, model, dataset, width, batch = FAMILIES[name]
    spec = run_spec(paper, model, dataset, Request(replace(SCALES["study"], width=width, batch_size=batch)))
    asked = {"data": {"image_size": 32}, "training": {"precision": precision, "batch_size": batch}}
    spec = replace(spec, hyperparameters=merged(spec.hyperparameters, asked))
    training = assemble(spec, noise(spec, 256)[0])
    training.total = 1000
    return training


def answer(step, n):
    """For each line read: make `n` steps, and write the processor time of one of them in ms."""
    for _ in sys.stdin:
        start = time.process_time()
        for _ in range(n):
            step()
        print(1e3 * (time.process_time() - start) / n, flush=True)


def work(training):
    """Answer with the steps of a training: a round of them, and the time of one."""
    keep_freed_memory()
    answer(CudaGraphStep(training), len(training.steps))


def by_turns(workers, rounds):
    """The least milliseconds of each worker's step; they take turns, the first of which does not count.

    A worker is where its modules are, as PYTHONPATH has it, and the arguments of Python that start it.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = []
    for modules, arguments in workers:
        env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(modules)}
        started.append(subprocess.Popen([sys.executable, *map(str, arguments)], env=env, **pipes))
    found = [[] for _ in started]
    for _ in range(rounds + 1):
        for worker, times in zip(started, found, strict=True):
            worker.stdin.write("\n")
            worker.stdin.flush()
            if not (said := worker.stdout.readline()):
                raise SystemExit(f"{' '.join(worker.args)} ended: what it says is above.")
            times.append(float(said))
    for worker in started:
        worker.communicate()
    return [min(times[1:]) for times in found]


def families(beside, names, rounds):
    """Print the table; the last column is the gain from the other checkout's fp32 to this one's bf16."""
    checkouts = [*([Path(beside).resolve()] if beside else []), Path(__file__).resolve().parents[1]]
    when = ("before", "after")[-len(checkouts) :]
    columns = [f"{name} {precision}" for precision in ("fp32", "bf16") for name in when]
    print(f"ms a step, one thread, {device_name('cpu')}")
    print(f"{'':14}" + "".join(f"{column:>14}" for column in (*columns, "gain")))
    for name in names:
        times = []
        for precision in ("fp32", "bf16"):
            how = ("--worker", name, precision)
            workers = [(checkout, [checkout / "benchmarks" / "bench_training.py", *how]) for checkout in checkouts]
            times += by_turns(workers, rounds)
        print(f"{name:14}" + "".join(f"{t:14.0f}" for t in times) + f"{times[0] / times[-1]:14.2f}", flush=True)


def qlae_training(device):
    """QLAE with the twelve latents of shapes3d, at full width, on noise: the content of images costs nothing."""
    with seeded(0):
        model = QLAE(12).to(device)
        images = torch.randint(256, (1024, 64, 64, 3), dtype=torch.uint8).to(device)
    optimizer = make_optimizer(model, learning_rate=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.1)
    return Training(model, optimizer, images, batch_size=BATCH[device.type], seed=0)


def main():
    device = pick_device()
    updates, batch = UPDATES[device.type], BATCH[device.type]
    print(f"QLAE at full width, batch {batch}, {device_name(device)}; wall clock, median of {updates} steps")
    print(f"{'':24}{'ms a step':>10}{'images/s':>10}{'GFLOP/s':>9}")
    for kept in (False, True) if device.type == "cpu" else (False,):
        if kept and not keep_freed_memory():
            break  # this C library has no such setting
        step = CudaGraphStep(training := qlae_training(device))
        seconds = median([elapsed(step, device) for _ in range(updates + 5)][5:])  # the first ones are warm-up
        name = "freed memory kept" if kept else "as it is"
        gflops = 1e-9 * step_operations(training) / seconds
        print(f"{name:24}{1e3 * seconds:10.1f}{batch / seconds:10.0f}{gflops:9.0f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="*", choices=FAMILIES, help="all of them when none is named")
    parser.add_argument("--beside", help="another checkout of this project")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(family_training(*given.worker))
    elif given.families is not None:
        families(given.beside, given.families or FAMILIES, given.rounds)
    else:
        main()
