"""Slot Jacobians of the paper's Transformer decoder beside `torch.func.jacfwd` of all of it. Run by `make bench`."""

import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import torch
from torch.func import jacfwd

from disentangle_repro.asymmetry.slot_jacobian import forward_jacobian, slot_jacobian
from disentangle_repro.core.device import device_name, make_generator, pick_device, seeded
from disentangle_repro.nets.slots import TransformerDecoder

SPRITES = {"image_size": 64, "n_slots": 5, "dim": 32}
CLEVR6 = {"image_size": 128, "n_slots": 7, "dim": 64}
LEAST_RATIO, MOST_DIFFERENCE, MOST_MEMORY = 3, 1e-4, 4 * 2**30  # to jacfwd's time, from its result, bytes
ALONE = "import bench_slot_jacobian as bench; bench.one_large_image()"


def decoder_and_slots(image_size, n_slots, dim, device="cpu"):
    with seeded(0):
        decoder = TransformerDecoder(dim, image_size=image_size).to(device)
    return decoder, torch.randn(1, n_slots, dim, generator=make_generator(0)).to(device)


@torch.no_grad()
def by_jacfwd(decoder, slots):
    whole = jacfwd(lambda s: decoder(s[None]).image[0])(slots[0])
    return whole.abs().sum((0, 4)).movedim(2, 0)[None]


def timed(function, decoder, slots):
    start = time.perf_counter()
    result = function(decoder, slots)
    if slots.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start, result


def one_large_image():
    "Prints seconds and the most memory that this process has had, in bytes."
    seconds, _ = timed(slot_jacobian, *decoder_and_slots(**CLEVR6))
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]
    print(seconds, 1024 * int(peak))


def large_alone():
    "Seconds and bytes of `one_large_image` in a process of its own; Linux only."
    here = Path(__file__).parent
    printed = subprocess.run([sys.executable, "-c", ALONE], cwd=here, check=True, capture_output=True, text=True).stdout
    seconds, memory = printed.split()
    return float(seconds), int(memory)


def main():
    device = pick_device()
    decoder, slots = decoder_and_slots(**SPRITES, device=device)
    print(f"one image of 64x64, 5 slots of 32; float32; {device_name(device)}; wall clock")
    print(f"{'':44}{'seconds':>10}{'ratio':>8}{'difference':>12}")
    slot_jacobian(decoder, slots)
    whole_seconds, whole = timed(by_jacfwd, decoder, slots)
    print(f"{'torch.func.jacfwd':44}{whole_seconds:10.2f}")
    any_decoder = partial(forward_jacobian, chunk=4)
    ways = {"slot_jacobian": slot_jacobian, "as of any decoder, 4 directions at once": any_decoder}
    found = {name: timed(torch.no_grad()(way), decoder, slots) for name, way in ways.items()}
    for name, (seconds, jacobian) in found.items():
        difference = (jacobian - whole).abs().max().item()
        print(f"{name:44}{seconds:10.2f}{whole_seconds / seconds:8.1f}{difference:12.1e}")
        assert difference < MOST_DIFFERENCE
    assert whole_seconds / found["slot_jacobian"][0] > LEAST_RATIO
    seconds, memory = large_alone()
    print(f"one image of 128x128, 7 slots of 64; CPU: {seconds:.2f} seconds, at most {memory / 2**30:.2f} GiB")
    assert memory < MOST_MEMORY


if __name__ == "__main__":
    main()
