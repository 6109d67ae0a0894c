"""Write `fixtures/object_centric.json`: what github.com/addtt/object-centric-library computes.

In a clone of it at `COMMIT`, in an environment with torch, numpy and scikit-learn:

    cd CLONE && PYTHONPATH=.:PROJECT/tests/parity python PROJECT/benchmarks/parity/make_object_centric.py

omegaconf, hydra and ignite are replaced by stand-ins. Slot attention is built as its configuration for CLEVR has it,
with maps half and then a quarter as large as the image; MONet as the configuration for images of 64 pixels a side.
"""

from importlib import import_module

import stand_ins
import torch
from parity_object_centric import LEARNING_STEPS, MONET, SIZE, SLOT_ATTENTION, SLOTS, images_of, masks_of, pieces
from parity_torch import (
    changes,
    double_precision,
    draw,
    draw_weights,
    gradients,
    record,
    recorded,
    same_noise,
    shapes_of,
    values_of,
    write,
)

COMMIT = "c13c550cc193b50af63f027e4d147d2bf47bb62d"


def filled(model):
    model.load_state_dict({**model.state_dict(), **draw_weights(shapes_of(model))}, strict=True)
    return model


def slot_attention() -> dict:
    "The module alone, and the autoencoder around it with its loss, gradient and step."
    made, filters = import_module("models.slot_attention.model"), SLOT_ATTENTION["filters"]
    encoder = {"channels": [filters] * 4, "kernels": [5] * 4, "paddings": [2] * 4, "strides": [1] * 4}
    decoder = {
        "conv_transposes": True, "channels": [filters, filters, filters, 4], "kernels": [5, 5, 5, 3],
        "strides": [2, 2, 1, 1], "paddings": [2, 2, 2, 1], "output_paddings": [1, 1, 0, 0],
        "activations": ["relu", "relu", "relu", None],
    }  # fmt: skip
    model = filled(made.SlotAttentionAE(
        name="slot-attention", width=SIZE, height=SIZE, num_slots=SLOTS, latent_size=SLOT_ATTENTION["dim"],
        encoder_params=encoder, decoder_params=decoder, w_broadcast=8, h_broadcast=8, mlp_size=SLOT_ATTENTION["mlp"],
    ))  # fmt: skip
    images = images_of()
    features = model.encoder(2 * images - 1)
    with same_noise():
        module = model.slot_attention(draw("features", 2, 25, filters))
    optimizer, before = torch.optim.Adam(model.parameters(), lr=SLOT_ATTENTION["learning_rate"]), values_of(model)
    with same_noise():
        output = model(images)
    output["loss"].backward()
    found = {"shapes": shapes_of(model), "module": record(module), "features": record(features.mT),
             "image": record(output["reconstruction"]), "masks": record(output["mask"][:, :, 0]),
             "slots": record(output["representation"]), "loss": record(output["loss"]),
             "gradient": recorded(gradients(model))}  # fmt: skip
    optimizer.step()
    return {**found, "step": recorded(changes(model, before))}


def monet():
    make, size = import_module("models.monet.model").Monet, MONET["size"]
    plain = {"batchnorms": [False] * 4, "bn_affines": [False] * 4}
    encoder = {"channels": [32, 32, 64, 64], "kernels": [3] * 4, "strides": [2] * 4, "paddings": [0] * 4,
               "input_channels": 4, "activations": "relu", "mlp_hidden_size": 256,
               "mlp_output_size": 2 * MONET["dim"], **plain}  # fmt: skip
    decoder = {"w_broadcast": size + 8, "h_broadcast": size + 8, "input_channels": MONET["dim"] + 2,
               "channels": [32, 32, 64, 64, 4], "kernels": [3, 3, 3, 3, 1], "paddings": [0] * 5,
               "activations": ["relu"] * 4 + [None], "batchnorms": [False] * 5, "bn_affines": [False] * 5}  # fmt: skip
    return filled(make(
        name="monet", width=size, height=size, num_slots=SLOTS, latent_size=MONET["dim"], num_blocks_unet=5,
        beta_kl=MONET["beta"], gamma=MONET["gamma"], bg_sigma=MONET["scales"][0], fg_sigma=MONET["scales"][1],
        encoder_params=encoder, decoder_params=decoder,
    ))  # fmt: skip


def of_monet() -> dict:
    "The masks that the attention network cuts, their gradient, and the terms of the loss from pieces that are given."
    model, given = monet(), pieces()
    log_masks = model._attention_process(images_of(MONET["size"]))
    (log_masks * draw("weights", *log_masks.shape)).sum().backward()
    attention = {name: value for name, value in gradients(model).items() if name.startswith("attention.")}
    masks, decoded = given["log_masks"].exp(), given["decoded"].exp()
    likelihood = model._compute_likelihood(given["images"], given["parts"], given["log_masks"])
    grey = model._compute_likelihood(given["images"][:, :1], given["parts"][:, :, :1], given["log_masks"])
    divergence = model._compute_mask_kl(masks, decoded)
    model.encoder.forward = lambda pieces: draw("said", 2 * SLOTS, 2 * MONET["dim"])
    import_module("torch.distributions.normal")._standard_normal = lambda size, **_: torch.randn(size)
    with same_noise():
        latents, kl, means = model._encode(given["images"], given["log_masks"])
    shapes = {name: shape for name, shape in shapes_of(model).items() if name.startswith("attention.")}
    return {"shapes": shapes, "log_masks": record(log_masks), "gradient": recorded(attention),
            "likelihood": record(likelihood), "likelihood of one channel": record(grey),
            "mask divergence": record(divergence), "kl": record(kl), "latents": record(latents),
            "means": record(means)}  # fmt: skip


def fg_ari() -> dict:
    ari, (true, predicted) = import_module("evaluation.metrics.ari").ari, masks_of()
    return {str(ignored): record(ari(true, predicted, ignored)) for ignored in (0, 1, 2)}


def rates() -> dict:
    "What the learning rates of both configurations are multiplied by."
    make = import_module("models.utils").linear_warmup_exp_decay
    schedules = {"slot attention": make(10_000, 0.5, 100_000), "monet": make(None, 0.5, 500_000)}
    return {name: {str(step): rate(step) for step in LEARNING_STEPS} for name, rate in schedules.items()}


if __name__ == "__main__":
    stand_ins.install()
    for name in ("data.datasets", "utils.logging", "utils.utils", "utils.viz"):
        stand_ins.module(name, MultiObjectDataset=None, dict_tensor_mean=None, make_recon_img=None)
    torch.set_num_threads(1)
    with double_precision():
        content = {"slot attention": slot_attention(), "monet": of_monet()}
    write("object_centric", {"repository": "addtt/object-centric-library", "commit": COMMIT, **content,
                             "fg_ari": fg_ari(), "rates": rates()})  # fmt: skip
