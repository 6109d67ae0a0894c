"""How many images a second each scene draws: by one process a core, or on a GPU. Run by `make bench`."""

import time
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context

import joblib
import torch

from disentangle_repro.core.device import device_name, pick_device
from disentangle_repro.data.scenes import Scene
from disentangle_repro.data.shapes3d import SHAPES3D

TARGETS = {  # images a second on two cores, where a number was set
    "shapes3d": 2000,
    "mpi3d": 500,
    "falcor3d": None,
    "isaac3d": 500,
    "clevr6": 30,
    "objects_room": None,
    "sprites": 1000,
}
SECONDS = 5  # that each process draws for, at least


def scene_named(name):
    """The scene of a chapter."""
    return getattr(import_module(f"disentangle_repro.data.{name}"), name.upper())


def random_sources(scene, seed):
    """As many as are drawn at a time when data sets are written."""
    if isinstance(scene, Scene):
        return scene.sources.factors(scene.sources.subset(4096, seed))
    return scene.sample(256, seed)


def draw_for_a_while(name, seed, device):
    """Images a second, as bytes in main memory, over whole batches; the first few images do not count."""
    scene = scene_named(name)
    sources = random_sources(scene, seed).to(device)
    scene.images(sources[:32]).cpu()
    if device.type == "cpu":
        barrier.wait()
    start, drawn = time.perf_counter(), 0
    while time.perf_counter() < start + SECONDS:
        drawn += len(scene.images(sources).cpu())
    return drawn / (time.perf_counter() - start)


def start_process(shared_barrier):
    """One thread each, and a point at which all processes wait for one another."""
    global barrier
    barrier = shared_barrier
    torch.set_num_threads(1)


def whole_grid(device):
    """Seconds for all images of shapes3d."""
    start = time.perf_counter()
    for rows in torch.arange(SHAPES3D.sources.size, device=device).split(16_384):
        SHAPES3D.images(SHAPES3D.sources.factors(rows)).cpu()
    return time.perf_counter() - start


def main():
    cores, context = joblib.cpu_count(), get_context("spawn")
    print(f"{cores} cores" + (f", {device_name()}" if torch.cuda.is_available() else ""))
    print(f"{'scene':14}{'pixels':>8}{'images a second':>20}{'target':>8}  drawn by")
    with context.Pool(cores, start_process, (context.Barrier(cores, timeout=600),)) as processes:
        for name, target in TARGETS.items():
            if not find_spec(f"disentangle_repro.data.{name}"):
                continue
            scene = scene_named(name)
            device = torch.device("cpu") if getattr(scene, "image", None) else pick_device()
            if device.type == "cpu":
                tasks = [(name, seed, device) for seed in range(cores)]
                rates = processes.starmap(draw_for_a_while, tasks, chunksize=1)
            else:
                rates = [draw_for_a_while(name, 0, device)]
            where = f"{cores} processes, one thread each" if device.type == "cpu" else device_name(device)
            size = f"{scene.image_size}x{scene.image_size}"
            print(f"{name:14}{size:>8}{sum(rates):20,.0f}{target or '':>8}  {where}", flush=True)
    if torch.cuda.is_available():
        print(f"all {SHAPES3D.sources.size:,} images of shapes3d: {whole_grid(torch.device('cuda')):.1f} s")


if __name__ == "__main__":
    main()
