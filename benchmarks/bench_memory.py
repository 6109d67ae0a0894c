"""Memory of a training on 100,000 images on disk: with FOLDER the images are written, with FOLDER FORM it trains.

Prints by how much the process's own memory grew at most (RssAnon), and that of pages of files, which the system takes
back when it needs them (RssFile). Linux; 1.6 GB in the folder.
"""

import sys
import time
from pathlib import Path

import h5py
import numpy as np

from disentangle_repro import create_model, fit_images
from disentangle_repro.train import images as chapter

N, SIZE = 100_000, 32


def write(folder: Path) -> None:
    rng, shape = np.random.default_rng(0), (N, SIZE, SIZE, 3)
    as_bytes = np.lib.format.open_memmap(folder / "bytes.npy", "w+", np.uint8, shape)
    as_floats = np.lib.format.open_memmap(folder / "floats.npy", "w+", np.float32, (N, 3, SIZE, SIZE))
    with h5py.File(folder / "images.h5", "w") as file:
        chunks = {"chunks": (64, *shape[1:]), "compression": "gzip", "compression_opts": 1}
        packed = file.create_dataset("images", shape, "uint8", **chunks)
        for start in range(0, N, 1000):
            coarse = rng.integers(256, size=(1000, 8, 8, 3), dtype=np.uint8)
            some = coarse.repeat(4, 1).repeat(4, 2)
            as_bytes[start : start + 1000] = packed[start : start + 1000] = some
            as_floats[start : start + 1000] = some.transpose(0, 3, 1, 2) / 255


def memory() -> dict[str, float]:  # MB
    lines = (line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(value.split()[0]) / 1e3 for name, value in lines if name in ("RssAnon", "RssFile")}


def main(folder: Path, form: str) -> None:
    model = create_model("qlae", n_latents=8, image_size=SIZE, width=0.1)
    few = np.full((64, SIZE, SIZE, 3), 255, np.uint8)
    fit_images(model, few, 20, batch_size=64, progress=False)
    if form == "h5py":
        chapter.free_memory = lambda device: 1e6  # as if all images were too many
    peak, before, start = {}, memory(), time.time()
    forms = {
        "memory": lambda: np.array(np.load(folder / "bytes.npy")),
        "bytes": lambda: np.load(folder / "bytes.npy", mmap_mode="r"),
        "floats": lambda: np.load(folder / "floats.npy", mmap_mode="r"),
        "h5py": lambda: h5py.File(folder / "images.h5")["images"],
    }

    def log(point: dict[str, float]) -> None:
        peak.update({name: max(value - before[name], peak.get(name, 0)) for name, value in memory().items()})

    fit_images(model, forms[form](), 200, batch_size=64, progress=False, log_every=5, on_log=[log])
    print(form, {name: f"+{value:.0f} MB" for name, value in peak.items()}, f"{time.time() - start:.0f} s")


if __name__ == "__main__":
    place = Path(sys.argv[1])
    main(place, sys.argv[2]) if len(sys.argv) > 2 else write(place)
