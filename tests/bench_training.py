"""How long an update of QLAE takes at full width, and what share of the machine that uses. Run by `make bench`."""

import torch

from disentangle_repro.core.device import device_name, pick_device, seeded
from disentangle_repro.qlae import QLAE
from disentangle_repro.train import Training, make_optimizer
from disentangle_repro.train.speed import keep_freed_memory, matmul_rates, step_speed

BATCH = {"cpu": 32, "cuda": 128}
UPDATES = {"cpu": 20, "cuda": 100}


def qlae_training(device):
    """QLAE with the twelve latents of shapes3d, at full width, on noise: the content of pictures costs nothing."""
    with seeded(0):
        model = QLAE(12).to(device)
        images = torch.randint(256, (1024, 64, 64, 3), dtype=torch.uint8).to(device)
    optimizer = make_optimizer(model, learning_rate=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.1)
    return Training(model, optimizer, images, batch_size=BATCH[device.type], seed=0)


def main():
    device = pick_device()
    rates = matmul_rates(device)
    updates, batch = UPDATES[device.type], BATCH[device.type]
    print(f"QLAE at full width, batch {batch}, {device_name(device)}; wall clock, median of {updates} steps")
    print(f"{'':24}{'ms a step':>10}{'images/s':>10}{'GFLOP/s':>9}" + "".join(f"{'of ' + name:>13}" for name in rates))
    for kept in (False, True) if device.type == "cpu" else (False,):
        if kept and not keep_freed_memory():
            break  # this C library has no such setting
        speed = step_speed(qlae_training(device), updates)
        shares = "".join(f"{speed['gflops'] / rate:13.0%}" for rate in rates.values())
        name = "freed memory kept" if kept else "as it is"
        figures = f"{speed['milliseconds']:10.1f}{speed['images_per_second']:10.0f}{speed['gflops']:9.0f}"
        print(f"{name:24}{figures}{shares}", flush=True)


if __name__ == "__main__":
    main()
