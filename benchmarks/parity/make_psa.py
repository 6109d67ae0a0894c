"""Write `fixtures/psa.json`: what github.com/koriavinash1/PSA computes.

In a clone of it at `COMMIT`, in an environment with torch, numpy, scikit-learn, scipy, matplotlib and einops:

    cd CLONE && PYTHONPATH=.:eval:PROJECT/tests/parity python PROJECT/benchmarks/parity/make_psa.py

imageio, torchvision and pytorch_fid are replaced by stand-ins. Models are built as `main.py` builds them, with the
configuration of a data set and the options of the scripts, but with four slots. A weight that is zero, and stays zero
in training, keeps its value.
"""

import argparse
from importlib import import_module

import numpy as np
import stand_ins
import torch
from parity_psa import BATCH, CASES, KINDS, LEARNING_RATE, LEARNING_STEPS, SIZES, SLOTS, bytes_of, slots_of
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

COMMIT = "08edc10c1ed3bfb8d74c91f31f4f81ef00a026ae"


def arguments(configuration: str, options: dict):
    "What the command line of a script makes of the configuration."
    hps, parser = import_module("hps"), argparse.ArgumentParser()
    hps.add_arguments(parser)
    known = hps.HPARAMS_REGISTRY[configuration].__dict__
    parser.set_defaults(**known)
    args = parser.parse_args([])
    vars(args).update({"x_like": "shared_dgauss", "std_init": 0.1} | options | {"nslots": SLOTS})
    return args


def new_model(configuration: str, options: dict):
    "A model before training: `main.py` sets the biases of its convolutions to zero."
    model = import_module("model").SlotAutoEncoder(arguments(configuration, options))
    for part in model.modules():
        if type(part) is torch.nn.Conv2d:
            torch.nn.init.zeros_(part.bias)
    return model


def trained(configuration: str, options: dict) -> dict:
    "Features, slots, image, loss, gradient and a step, as the training loop has them."
    model = new_model(configuration, options)
    initial = {name: [p.mean().item(), p.std().item()] for name, p in model.named_parameters() if p.numel() >= 1000}
    learned = {name: shape for name, shape in shapes_of(model).items() if name != "likelihood.x_logscale.weight"}
    model.load_state_dict({**model.state_dict(), **draw_weights(learned)}, strict=True)
    images = (bytes_of(SIZES[configuration]).permute(0, 3, 1, 2).double() - 127.5) / 127.5
    with same_noise(), torch.no_grad():
        zs = model.encoder(images)
        (drawn, _), _, masks, attention, (_, slots) = model.forward_latents(zs)
    # nothing of the average of weights is needed for one step
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01, betas=[0.9, 0.9])
    before = values_of(model)
    with same_noise():
        out = model(images)
    out["elbo"].backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 100)
    assert norm < 100, f"the gradient of {options} was clipped"
    found = {"shapes": learned, "features": record(zs), "slots": record(slots), "image": record(drawn),
             "attention": record(attention), "masks": None if masks is None else record(masks[:, :, 0]),
             "terms": {name: record(out[name]) for name in ("nll", "kl", "elbo")}, "norm": norm.item(),
             "gradient": recorded(gradients(model)), "initial": initial}  # fmt: skip
    optimizer.step()
    return {**found, "step": recorded({n: c for n, c in changes(model, before).items() if n in found["gradient"]})}


def scores() -> dict:
    "As `get_metrics.py` puts them together for two runs, whose slots are float32."
    metrics, found = import_module("metrics"), {}
    for kind in KINDS:
        first, second = (slots.float() for slots in slots_of(kind))
        _, ordered = metrics.slot_mean_corr_coef(first, second, affine_transformation=False, return_ordered=True)
        affine, _ = metrics.slot_mean_corr_coef(first, second, affine_transformation=True, return_ordered=True)
        found[kind] = {"smcc": record(affine), "r2": record(metrics.r2_score(first, ordered))}
    return found


def rates() -> dict:
    rate = import_module("utils").linear_warmup(5000)
    return {str(step): rate(step) for step in LEARNING_STEPS}


if __name__ == "__main__":
    stand_ins.install()
    stand_ins.module("imageio")
    stand_ins.module("torchvision.transforms")
    stand_ins.module("pytorch_fid", fid_score=None)
    torch.set_num_threads(1)
    assert BATCH == 2
    torch.manual_seed(0)
    found = scores()
    with double_precision():
        models = {name: trained("objects_room", options) for name, options in CASES.items()}
        models["psa at 64"] = trained("clevr", CASES["psa"])
    assert all(np.isfinite(model["norm"]) for model in models.values())
    content = {"models": models, "scores": found, "rates": rates()}
    write("psa", {"repository": "koriavinash1/PSA", "commit": COMMIT, **content})
