"""Write `fixtures/asymmetry.json`: what github.com/JackBrady/interaction-asymmetry computes.

In a clone of it at `COMMIT`, in an environment with torch, numpy, scikit-learn and einops:

    cd CLONE && PYTHONPATH=.:PROJECT/tests/parity python PROJECT/benchmarks/parity/make_asymmetry.py

wandb is replaced by a stand-in. Learning rates come from the released training loop, run with parts that do nothing.
"""

from importlib import import_module
from types import SimpleNamespace
from unittest import mock

import numpy as np
import stand_ins
import torch
from parity_asymmetry import (
    AT_A_QUARTER,
    BATCH,
    BROADCAST_FILTERS,
    BROADCAST_GAIN,
    DIM,
    FILTERS,
    INITIALISED,
    ITERATIONS,
    JACOBIAN,
    LEARNING_RATE,
    SIZE,
    SLOTS,
    SMALL,
    SPRITES,
    WEIGHTS,
    bytes_of,
    jacobians_and_masks,
    masks_with_an_empty_scene,
    slots_of,
)
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

COMMIT = "88de3ce15ce615dd6bc70e5229f9ed4fd40c55f8"


def filled(model, gain: float = 1.0):
    "A released module with drawn weights; its grids, which are float32, become what they round."
    for part in model.modules():
        if hasattr(part, "grid"):
            steps = part.grid.shape[1] - 1
            part.grid = (part.grid.double() * steps).round() / steps
    model.load_state_dict(draw_weights(shapes_of(model), gain), strict=True)
    return model


def encoder(kind: str, dim: int):
    make = import_module("models.encoders").SlotEncoder
    return make(resolution=(SIZE, SIZE), num_slots=SLOTS, slot_dim=dim, chan_dim=FILTERS, enc_type=kind, data="sprites")


def transformer_decoder(dim: int, size: int):
    make = import_module("models.decoders").TransformerDecoder
    sizes = {"proj_dim": SMALL["lifted"], "query_dim": SMALL["queried"]}
    return make(num_slots=SLOTS, slot_dim=dim, im_shape=(size, size), n_layers=2, **sizes)


def images_of(size: int) -> torch.Tensor:
    return bytes_of(size).permute(0, 3, 1, 2).double() / 255


def trained(model, size: int = SIZE) -> dict:
    "Terms of the loss, its gradient and a step, as the training loop has them."
    recon = import_module("eval.eval_metrics").get_recon_loss
    images, shapes = images_of(size), shapes_of(model)
    optimizer, before = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE), values_of(model)
    features = model.encoder(images)
    with same_noise(), mock.patch("torch.distributions.normal._standard_normal", lambda size, **_: torch.randn(size)):
        slots, image = model(images)
    terms = {"reconstruction": recon(images, image)}
    loss = WEIGHTS["sigma"] * terms["reconstruction"]
    if model.vae:
        terms["kl"] = model.dkl
        loss = loss + WEIGHTS["beta"] * model.dkl
    if hasattr(model.decoder, "transformer"):
        terms["interaction"] = model.decoder.transformer.compute_interaction()
        loss = loss + WEIGHTS["alpha"] * terms["interaction"]
    loss.backward()
    found = {"shapes": shapes, "encoder": record(features), "slots": record(slots), "image": record(image),
             "terms": recorded(terms), "loss": record(loss), "gradient": recorded(gradients(model))}  # fmt: skip
    optimizer.step()
    return {**found, "step": recorded(changes(model, before))}


def model_of(kind: str):
    make, dim = import_module("models.autoencoder").AutoEncoder, 2 * DIM
    made = make("sprites", SLOTS, dim, encoder(kind, dim), transformer_decoder(DIM, SIZE), True)
    return filled(made)


def of_sprites(kind: str):
    "A released model of Sprites with a KL term, as it is before training."
    make, encoders, decoders = (import_module(f"models.{name}") for name in ("autoencoder", "encoders", "decoders"))
    slots, dim, sizes = SPRITES["slots"], SPRITES["dim"], {"num_slots": SPRITES["slots"]}
    encoder = encoders.SlotEncoder(
        resolution=(64, 64), slot_dim=2 * dim, chan_dim=SPRITES["filters"], enc_type=kind, data="sprites", **sizes
    )
    decoder = decoders.TransformerDecoder(
        slot_dim=dim, im_shape=(64, 64), n_layers=2, proj_dim=SPRITES["lifted"], query_dim=SPRITES["queried"], **sizes
    )
    return make.AutoEncoder("sprites", slots, 2 * dim, encoder, decoder, True)


def initial(kind: str) -> dict:
    "Of each parameter, over several models as they are before training: how many numbers, their mean and deviation."
    pooled = {}
    for seed in range(INITIALISED):
        torch.manual_seed(seed)
        for name, parameter in of_sprites(kind).named_parameters():
            pooled.setdefault(name, []).append(parameter.detach().double().flatten())
    values = {name: torch.cat(of) for name, of in pooled.items()}
    return {name: [len(of), *(float(f"{x.item():.6g}") for x in (of.mean(), of.std()))] for name, of in values.items()}


def at_a_quarter() -> dict:
    "The released code on 32x32 pixels, with narrower layers put into it, and heads as they are."
    make, encoders, decoders = (import_module(f"models.{name}") for name in ("autoencoder", "encoders", "decoders"))
    transformer, of = import_module("models.transformer").Transformer, SimpleNamespace(**AT_A_QUARTER)
    encoder = encoders.SlotEncoder(
        resolution=(of.size, of.size), num_slots=of.slots, slot_dim=2 * of.dim, chan_dim=of.filters,
        enc_type="transformer", data="sprites",
    )  # fmt: skip
    encoder.transformer = transformer(
        d_model=2 * of.dim, d_q=2 * of.dim, d_ff=of.hidden, n_heads=4, n_layers=5, n_slots=of.slots, selfatt=True,
        crossatt=True,
    )  # fmt: skip
    decoder = decoders.TransformerDecoder(
        num_slots=of.slots, slot_dim=of.dim, im_shape=(of.size, of.size), n_layers=2, proj_dim=of.inner,
        query_dim=of.queried,
    )  # fmt: skip
    linear = torch.nn.Linear
    decoder.init_mlp[0], decoder.init_mlp[2] = linear(of.dim, 4 * of.lifted), linear(4 * of.lifted, of.lifted)
    for layer in decoder.transformer.layers:
        layer.norm_att_kv, layer.cross_attn.to_kv = torch.nn.LayerNorm(of.lifted), linear(of.lifted, 2 * of.inner)
        layer.cross_attn.scale = SPRITES["queried"] ** -0.5
    model = filled(make.AutoEncoder("sprites", of.slots, 2 * of.dim, encoder, decoder, True))
    return trained(model, of.size)


def broadcast() -> dict:
    "The broadcast decoder on its full map, and what is cut from it where images have 64 pixels a side."
    make = import_module("models.decoders").SpatialBroadcastDecoder
    decoder = filled(make(slot_dim=DIM, resolution=(128, 128), chan_dim=BROADCAST_FILTERS), BROADCAST_GAIN)
    slots = slots_of("broadcast", 2, DIM)[:1].requires_grad_()
    image = decoder(slots)
    (image**2).sum().backward()
    cut = filled(make(slot_dim=DIM, resolution=(64, 64), chan_dim=BROADCAST_FILTERS), BROADCAST_GAIN)(slots)
    return {"shapes": shapes_of(decoder), "image": record(image), "of slots": record(slots.grad),
            "gradient": recorded(gradients(decoder)), "cut": record(cut)}  # fmt: skip


def slot_jacobians() -> dict:
    metrics, make = import_module("eval.eval_metrics"), import_module("models.decoders").SpatialBroadcastDecoder
    size, dim = JACOBIAN["size"], JACOBIAN["dim"]
    decoders = {
        "transformer": filled(transformer_decoder(dim, size)),
        "spatial-broadcast": filled(
            make(slot_dim=dim, resolution=(128, 128), chan_dim=BROADCAST_FILTERS), BROADCAST_GAIN
        ),
    }
    found = {}
    for kind, decoder in decoders.items():
        data = {"transformer": "sprites", "spatial-broadcast": "clevr"}[kind]
        args = SimpleNamespace(data=data, decoder=kind, num_slots=SLOTS, slot_dim=dim)
        slots = slots_of("jacobian", SLOTS, dim)[:1]
        model = SimpleNamespace(decoder=decoder)
        of = {norm: metrics.compute_decoder_jacobian(args, model, slots, norm=norm) for norm in (False, True)}
        found[kind] = {"shapes": shapes_of(decoder), "jacobian": record(of[False]), "normalised": record(of[True])}
    return found


def scores() -> dict:
    "J-ARI and JIS as the released evaluation puts them together."
    metrics, (jacobian, masks) = import_module("eval.eval_metrics"), jacobians_and_masks()
    normalised = jacobian / jacobian.sum(1, keepdim=True)

    def of(masks: torch.Tensor) -> dict:
        one_hot = torch.nn.functional.one_hot(masks, 4).permute(0, 3, 1, 2)
        shown = normalised * one_hot[:, 1:].sum(1, keepdim=True)
        return {"j_ari": record(metrics.get_ari(one_hot, shown)), "jis": record(metrics.get_jac_interaction(shown))}

    return {"scenes": of(masks), "an empty scene": of(masks_with_an_empty_scene())}


class Loss:
    "Adds up what the training loop weighs, and remembers it."

    def __init__(self, value: float = 0.0):
        self.value = value

    def __rmul__(self, weight):
        return self

    def __iadd__(self, term):
        self.value += term
        return self

    def backward(self):
        Loss.last = self.value


def timing(dataset: str) -> dict:
    "Learning rate and weight of the interaction at some iterations of the released training loop."
    with mock.patch.object(np, "VisibleDeprecationWarning", DeprecationWarning, create=True):  # gone from numpy
        loop = import_module("train_model")
    seen = {}

    class Optimizer:
        def __init__(self, parameters, lr):
            self.param_groups, self.iteration = [{"lr": lr}], 0

        def zero_grad(self): ...

        def state_dict(self): ...

        def step(self):
            self.iteration += 1
            if self.iteration in ITERATIONS:
                seen[self.iteration] = (self.param_groups[0]["lr"], Loss.last)

    images = SimpleNamespace(to=lambda device: None)
    transformer = SimpleNamespace(compute_interaction=lambda: 1.0)

    class Model:
        dkl, decoder = 0.0, SimpleNamespace(transformer=transformer)

        def __call__(self, x):
            return None, None

        def parameters(self):
            return []

        def train(self): ...

        def state_dict(self): ...

    own = {"sprites": {"warmup_lr_steps": 10_000}, "clevr": {"warmup_lr_steps": 2_500}}[dataset]
    args = SimpleNamespace(seed=1, use_wandb=0, data=dataset, alpha=0.05, beta=0.05, sigma=1.0, decoder="transformer",
                           lr=5e-4, warmup_alpha_steps=25_000, decay_rate=0.1, decay_steps=500_000, load_seed=-1,
                           load_iter=0, num_iters=500_000, eval_iter=10**9, test_model=0, **own)  # fmt: skip
    with (
        mock.patch.object(loop, "get_dataloader", lambda args: ([(images, None)], None, None)),
        mock.patch.object(loop, "get_model", lambda args: Model()),
        mock.patch.object(loop, "setup_direcs", lambda *_, **__: ""),
        mock.patch.object(loop, "eval_model", lambda *_, **__: None),
        mock.patch.object(loop, "get_recon_loss", lambda *_: Loss()),
        mock.patch.object(loop.torch, "save", lambda *_: None),
        mock.patch.object(loop.torch.optim, "Adam", Optimizer),
    ):
        loop.train_model(args)
    return {str(iteration): list(values) for iteration, values in seen.items()}


if __name__ == "__main__":
    stand_ins.install()
    stand_ins.module("data.dataloader", get_dataloader=None)
    torch.set_num_threads(1)
    assert BATCH == 2
    with double_precision():
        content = {"models": {kind: trained(model_of(kind)) for kind in ("transformer", "slot-attention")},
                   "broadcast": broadcast(), "jacobians": slot_jacobians(), "scores": scores()}  # fmt: skip
    content["timing"] = {dataset: timing(dataset) for dataset in ("sprites", "clevr")}
    content["initial"] = {kind: initial(kind) for kind in ("transformer", "slot-attention")}
    with double_precision():
        content["at a quarter"] = at_a_quarter()
    write("asymmetry", {"repository": "JackBrady/interaction-asymmetry", "commit": COMMIT, **content})
