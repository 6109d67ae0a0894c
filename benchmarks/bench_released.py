"""How long a round of training steps takes in two papers' released PyTorch code and here, with the same networks.

Give checkouts of the papers' repositories: `--factorqvae DIR` (its data and Lightning are not needed) and `--asymmetry
DIR` (needs einops). Processor time of one thread, the least of several rounds in which all take turns; beside it the
number of parameters, which shows whether networks are equal in size.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import torch
from bench_training import answer, by_turns

from disentangle_repro.experiment.hyperparameters import merged
from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.plan.cost import noise
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.plan.specs import run_spec
from disentangle_repro.lab.runs.assemble import assemble
from disentangle_repro.train.loop import CudaGraphStep
from disentangle_repro.train.speed import keep_freed_memory

PAPERS = {  # model, data set, batch
    "factorqvae": ("factorqvae", "shapes3d", 32),
    "asymmetry": ("transformer-transformer-rec_kl_interact", "sprites", 16),
}
HOW = [  # the first is what others are compared with
    ("released", "as it is"),
    ("released", "memory kept"),  # freed memory, as here
    ("ours", "fp32"),
    ("ours", "bf16"),
]


def our_training(paper, precision):
    """A training of the released networks at their size, but for the batch, on noise."""
    model, dataset, batch = PAPERS[paper]
    spec = run_spec(paper, model, dataset, Request(SCALES["paper"], protocol="code"))
    asked = {"training": {"precision": precision, "batch_size": batch}}
    spec = replace(spec, hyperparameters=merged(spec.hyperparameters, asked))
    training = assemble(spec, noise(spec, 4 * batch)[0])
    training.total = 1000
    return training


def without(*packages):
    """Let modules that a step does not use be imported where they are not installed; the last of them."""
    sys.modules |= {package: ModuleType(package) for package in packages}
    return sys.modules[packages[-1]]


def released_factorqvae(batch):
    """FactorQVAE as released, and its step: an update of the model, and one of the discriminator on as many images."""
    without("torchvision", "pytorch_lightning").LightningModule = torch.nn.Module  # its use in a step is set below
    from models.factor_qvae import FactorQVAE

    codebook = SimpleNamespace(num_embeddings=64, embedding_dim=1, init_type="normal")
    quantizer = SimpleNamespace(name="RelaxedVQQuantizer", temp=1, kl_weight=1e-3)
    sizes = {"group_count": 3, "n_blk_per_group": 2, "channel": 128, "hidden_dim": 128, "input_channel": 64}
    parts = {"codebook": codebook, "quantizer": quantizer, "discriminator": SimpleNamespace(gamma=1e-4)}
    rates = {"vae_lr": 1e-3, "disc_lr": 1e-3, "vae_lr_iter": 50_000, "disc_lr_iter": 50_000}
    config = SimpleNamespace(
        model=SimpleNamespace(name="FactorQVAE", **sizes, **parts),
        data=SimpleNamespace(img_size=64, num_latents=12),
        train=SimpleNamespace(reconst_loss="F.mse_loss", optimizer="torch.optim.Adam", **rates),
    )
    model = FactorQVAE(config, None)
    optimizers = model.configure_optimizers()
    model.optimizers = lambda: [one["optimizer"] for one in optimizers]
    model.lr_schedulers = lambda: [one["lr_scheduler"]["scheduler"] for one in optimizers]
    judging = [*model.discriminator.parameters()]  # PyTorch now refuses to go on from there to changed weights
    model.manual_backward = lambda loss, **how: loss.backward(**how, inputs=None if how else judging)
    model.log = lambda *_, **__: None
    model.global_step, model.device = 1, torch.device("cpu")
    images = torch.rand(2 * batch, 3, 64, 64) - 0.5
    return model, lambda: model.training_step(images, 1)


def released_asymmetry(batch):
    """The regularised Transformer-VAE as released for Sprites, and its step, an update."""
    without("wandb")
    from eval.eval_metrics import get_recon_loss
    from utilities.setup_utils import get_model

    sizes = {"num_slots": 5, "slot_dim": 32, "proj_dim": 516, "query_dim": 180, "num_dec_layers": 2}
    kinds = {"data": "sprites", "encoder": "transformer", "decoder": "transformer"}
    model = get_model(SimpleNamespace(**kinds, **sizes, alpha=0.05, beta=0.05))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    images = torch.rand(batch, 3, 64, 64)

    def step():
        optimizer.zero_grad()
        _, reconstructed = model(images)
        terms = 0.05 * model.dkl, 0.05 * model.decoder.transformer.compute_interaction()
        (5 * get_recon_loss(images, reconstructed) + sum(terms)).backward()
        optimizer.step()

    return model, step


def worker(paper, whose, how):
    """Answer with rounds of steps, and say how many parameters learn."""
    if how != "as it is":
        keep_freed_memory()
    if whose == "released":
        model, rounds = {"factorqvae": released_factorqvae, "asymmetry": released_asymmetry}[paper](PAPERS[paper][2])
    else:
        training = our_training(paper, how)
        model, step = training.model, CudaGraphStep(training)

        def rounds():
            for _ in training.steps:
                step()

    learned = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    print(f"{paper}, {whose}, {how}: {learned / 1e6:.3f} million parameters", file=sys.stderr)
    answer(rounds, 1)


def compare(paper, checkout, rounds):
    """Print how long a round takes as released and here, and how many times faster it is here."""
    here = Path(__file__).resolve()
    path = f"{here.parents[1]}:{checkout.resolve()}"
    times = by_turns([(path, [here, "--worker", paper, *how]) for how in HOW], rounds)
    for (whose, how), ms in zip(HOW, times, strict=True):
        print(f"{paper:12}{whose:10}{how:14}{ms:8.0f} ms{times[0] / ms:8.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in PAPERS:
        parser.add_argument(f"--{name}", type=Path, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker(*given.worker)
    elif not any(getattr(given, name) for name in PAPERS):
        parser.error("--factorqvae and --asymmetry are left out: give a checkout of one of them or of both.")
    else:
        for name in PAPERS:
            if checkout := getattr(given, name):
                compare(name, checkout, given.rounds)
