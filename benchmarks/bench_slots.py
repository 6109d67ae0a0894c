"""Probabilistic slot attention beside slot attention: forward passes, taken in turn. Run by `make bench`."""

import time
from statistics import median

import torch

from disentangle_repro.baselines.slot_attention import SlotAttention
from disentangle_repro.core.device import device_name, make_generator, pick_device, seeded
from disentangle_repro.psa.probabilistic_slot_attention import ProbabilisticSlotAttention

BATCH, POSITIONS, DIM, SLOTS, ITERATIONS = 16, 1024, 64, 7, 3
ROUNDS = {"cpu": 50, "cuda": 300}


def milliseconds(layers, features, generator, rounds):
    """Medians over rounds in which every layer has its turn, and of each round's ratio to the first layer."""
    times = {name: [] for name in layers}
    for _ in range(rounds + 5):
        for name, layer in layers.items():
            start = time.perf_counter()
            layer(features, generator)
            if features.is_cuda:
                torch.cuda.synchronize()
            times[name].append(1e3 * (time.perf_counter() - start))
    times = {name: t[5:] for name, t in times.items()}
    first = next(iter(times.values()))
    return {name: (median(t), median(a / b for a, b in zip(t, first, strict=True))) for name, t in times.items()}


def main():
    device = pick_device()
    sizes = f"batch {BATCH}, N = {POSITIONS}, d = {DIM}, K = {SLOTS}, T = {ITERATIONS}"
    with seeded(0):
        layers = {
            "slot attention": SlotAttention(SLOTS, DIM, iterations=ITERATIONS),
            "PSA": ProbabilisticSlotAttention(SLOTS, DIM, iterations=ITERATIONS),
            "PSA-Proj": ProbabilisticSlotAttention(SLOTS, DIM, iterations=ITERATIONS, projected=True),
        }
        features = torch.randn(BATCH, POSITIONS, DIM).to(device)
    layers = {name: layer.to(device) for name, layer in layers.items()}
    print(f"{sizes}; {device_name(device)}; wall clock, medians of {ROUNDS[device.type]} rounds in turn")
    print(f"{'':24}{'forward, ms':>12}{'ratio':>8}")
    with torch.no_grad():
        measured = milliseconds(layers, features, make_generator(0, device), ROUNDS[device.type])
    for name, (taken, ratio) in measured.items():
        print(f"{name:24}{taken:12.2f}{ratio:8.2f}")


if __name__ == "__main__":
    main()
