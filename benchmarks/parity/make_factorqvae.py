"""Write `fixtures/factorqvae.json`: what github.com/ituvisionlab/FactorQVAE computes.

In a clone of it at `COMMIT`, in an environment with torch, numpy, scipy, scikit-learn and yaml of `constraints.txt`:

    cd CLONE && PYTHONPATH=.:PROJECT/tests/parity python PROJECT/benchmarks/parity/make_factorqvae.py

Lightning, torchvision and omegaconf are replaced by stand-ins; `device="cuda"` in an evaluation and the argument
`multi_class`, which scikit-learn has dropped, are taken out on the way, and
arrays of one number become that number, as numpy once let them. Boosted trees, which
break ties at random, get a seed.
"""

from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import stand_ins
import torch
import yaml
from parity_factorqvae import BATCHES, DISCRETE, METRICS, MODELS, SIZES, attribute_codes, images_of
from parity_torch import (
    changes,
    double_precision,
    draw_weights,
    gradients,
    record,
    recorded,
    same_noise,
    shapes_of,
    values_of,
    write,
)

CLONE = Path.cwd()
COMMIT = "7d74cea8176efca66ca5aa40a94dbd738dc90d21"


def space(**entries):
    return SimpleNamespace(
        **{key: space(**value) if isinstance(value, dict) else value for key, value in entries.items()}
    )


def config(name: str) -> SimpleNamespace:
    quantizer, own = MODELS[name]
    return space(
        model={
            "name": name, "group_count": 3, "n_blk_per_group": 2,
            "channel": SIZES["channel"], "hidden_dim": SIZES["channel"], "input_channel": SIZES["channel"] // 2,
            "codebook": {"num_embeddings": SIZES["n_values"], "embedding_dim": 1, "init_type": "normal"},
            "quantizer": {"name": quantizer, "temp": SIZES["temperature"], **own},
            "discriminator": {"gamma": own.get("gamma")},
        },
        data={"img_size": 64, "num_latents": SIZES["n_latents"]},
        train={"reconst_loss": "F.mse_loss", "optimizer": "torch.optim.Adam", "vae_lr": 1e-3, "vae_lr_iter": 50_000,
               "disc_lr": 1e-3, "disc_lr_iter": 50_000},
    )  # fmt: skip


def optimizers_of(model) -> list[torch.optim.Optimizer]:
    made = model.configure_optimizers()
    return [each["optimizer"] for each in (made if isinstance(made, tuple) else (made,))]


def one_step(model, images) -> dict:
    "Loss, gradients and step of a model with one optimiser."
    (optimizer,) = optimizers_of(model)
    before = values_of(model)
    with same_noise():
        loss = model.training_step(images, 0)
    loss.backward()
    found = {"loss": record(loss), "gradient": recorded(gradients(model))}
    optimizer.step()
    return {**found, "step": recorded(changes(model, before))}


def two_steps(model, images) -> dict:
    "The same of a model and its discriminator; the second gradient is taken by the discriminator's parameters only."
    judge, kept = list(model.discriminator.parameters()), {}
    own = [p for part in (model.encoder, model.decoder) for p in part.parameters()]
    before = values_of(model)

    def backward(loss, retain_graph=False):
        of = "discriminator" if "model" in kept else "model"
        if of == "discriminator":
            try:
                torch.autograd.grad(loss, own, retain_graph=True, allow_unused=True)
            except RuntimeError as error:
                kept["discriminator_reaches_model"] = str(error).split(":")[0]
            loss.backward(inputs=judge)
        else:
            loss.backward(retain_graph=retain_graph)
        kept[of] = {
            "loss": record(loss),
            "gradient": recorded(gradients(model if of == "model" else model.discriminator)),
        }

    with same_noise():
        optimizers = optimizers_of(model)
        model.optimizers = lambda: optimizers
        model.lr_schedulers = lambda: [SimpleNamespace(step=lambda: None)] * 2
        model.manual_backward = backward
        model.training_step(images, 0)
    return {**kept, "step": recorded(changes(model, before))}


def evaluated(model, images) -> torch.Tensor:
    "The codes that are scored."
    utils, zeros = import_module("metrics.utils"), torch.zeros
    with same_noise(), mock.patch.object(torch, "zeros", lambda *size, device=None: zeros(*size)):
        return utils.quantizer_representation_function(model.eval(), images)


def model_fixture(name: str) -> dict:
    models = {"AE": "ae", "VAE": "vae", "BioAE": "bioae", "QLAE": "qlae", "DVAE": "dvae", "QVAE": "qvae",
              "FactorVAE": "factor_vae", "FactorDVAE": "factor_dvae", "FactorQVAE": "factor_qvae"}  # fmt: skip
    discriminator = import_module("blocks.discriminator").Discriminator
    defaults = (SIZES["discriminator"], *discriminator.__init__.__defaults__[1:])
    with mock.patch.object(discriminator.__init__, "__defaults__", defaults):
        model = getattr(import_module(f"models.{models[name]}"), name)(config(name), None)
    shapes = shapes_of(model)
    model.load_state_dict(draw_weights(shapes), strict=True)
    images = images_of(2 if name.startswith("Factor") else 1)
    encoded = model.encoder(images)
    latents = model.decoder.dense.in_features
    found = {
        "shapes": shapes,
        "encoder": record(encoded),
        "decoder": record(model.decoder(encoded[:, :latents].tanh())),
        "codes": record(evaluated(model, images)),
    }
    model.train()
    found |= two_steps(model, images) if name.startswith("Factor") else one_step(model, images)
    return {**found, "logged": recorded(model.logged)}


def metric_fixture(kind: str) -> dict:
    "InfoMEC and DCI of codes that are known."
    infomec, dci = import_module("metrics.infomec"), import_module("metrics.dci")
    sources, latents = attribute_codes(kind)
    model = SimpleNamespace(config=space(model={"name": "DVAE" if DISCRETE[kind] else "VAE"}))
    fit = infomec.linear_model.LogisticRegression

    def without_multi_class(multi_class=None, n_jobs=None, **options):
        return fit(**options)

    information = infomec.feature_selection.mutual_info_classif
    given = (latents.T, sources.T)
    with (
        mock.patch.object(
            infomec.feature_selection, "mutual_info_classif", lambda *a, **k: information(*a, **k).item()
        ),
        mock.patch.object(infomec, "generate_batch_factor_code", lambda *_: given),
        mock.patch.object(infomec.linear_model, "LogisticRegression", without_multi_class),
        mock.patch.object(
            dci.ensemble, "GradientBoostingClassifier", partial(dci.ensemble.GradientBoostingClassifier, random_state=0)
        ),
    ):
        nmi, scores = infomec.compute_infomec(None, model, None, np.random.RandomState(1), len(sources))
        found = {f"infomec {name}": record(scores[name]) for name in ("infom", "infoe", "infoc", "active_latents")}
        train = 2 * len(sources) // 3
        importance, scores = dci._compute_dci(
            latents[:train].T, sources[:train].T, latents[train:].T, sources[train:].T
        )
    of_dci = {f"dci {name}": record(value) for name, value in scores.items()}
    return {**found, "infomec nmi": record(nmi), **of_dci, "dci importance": record(importance)}


def settings() -> dict:
    "What the released configurations have beside sizes of networks, by data set and model."
    files = {"shapes3d": "Shapes3D", "isaac3d": "Isaac3D", "mpi3d": "MPI3DComplex"}
    found = {dataset: {} for dataset in files}
    for dataset, folder in files.items():
        for path in sorted((CLONE / "configs" / folder).glob("*.yaml")):
            read = yaml.safe_load(path.read_text())
            parts = {**read["model"].get("codebook", {}), **read["model"]["quantizer"]}
            parts |= {
                **read["model"].get("discriminator", {}),
                **read["train"],
                "batch_size": read["data"]["batch_size"],
            }
            numbers = {
                name: value for name, value in parts.items() if name not in ("name", "optimizer", "reconst_loss")
            }
            found[dataset][read["model"]["name"]] = {
                name: float(value) for name, value in numbers.items() if name not in ("init_type", "temp")
            }
    return found


def timing() -> dict:
    "Learning rate before a batch, and temperature by the number of steps that all optimisers have made."
    model = import_module("models.ae").AE(config("AE"), None)
    made = model.configure_optimizers()
    optimizer, scheduler = made["optimizer"], made["lr_scheduler"]["scheduler"]
    rates = {}
    for batch in range(BATCHES[-1] + 1):
        if batch in BATCHES:
            rates[str(batch)] = optimizer.param_groups[0]["lr"]
        scheduler.step()
    module, temperatures = SimpleNamespace(quantizer=SimpleNamespace()), {}
    for step in BATCHES:
        trainer = SimpleNamespace(global_step=step)
        import_module("train").DecayTemperature().on_train_batch_start(trainer, module, None, 0)
        temperatures[str(step)] = float(module.quantizer.temp)
    return {"rates": rates, "temperatures": temperatures}


if __name__ == "__main__":
    stand_ins.install()
    stand_ins.module("pytorch_lightning", Callback=object)
    stand_ins.module("pytorch_lightning.callbacks", ModelCheckpoint=None)
    stand_ins.module("pytorch_lightning.loggers", TensorBoardLogger=None)
    for dataset in ("shapes3d.Shapes3D", "isaac3d.Isaac3D", "mpi3d_complex.MPI3DComplex"):
        stand_ins.module("data." + dataset.split(".")[0], **{dataset.split(".")[1] + "DataModule": None})
    torch.set_num_threads(1)
    with double_precision():
        found = {name: model_fixture(name) for name in MODELS}
        of_time = timing()
    of_metrics = {kind: metric_fixture(kind) for kind in METRICS}
    content = {"models": found, "metrics": of_metrics, "settings": settings(), "timing": of_time}
    write("factorqvae", {"repository": "ituvisionlab/FactorQVAE", "commit": COMMIT, **content})
