"""Every model's steps, forward and backward, on PyTorch's `meta` device, which has shapes and no numbers.

A loss that asks for a number (`.item()`, an `if` on a tensor, a mask that selects) makes a device wait and cannot be
recorded and replayed: there is no number to give, and PyTorch raises. A tensor made on the CPU in a step is one that
a device would have to be sent. Not every operation on `meta` minds it, so each one is looked at.
"""

from unittest.mock import patch

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from disentangle_repro.core.device import make_generator
from disentangle_repro.factorqvae.settings import ABLATIONS
from disentangle_repro.models import MODELS, SLOT_MODELS, create_model, list_models
from disentangle_repro.psa.released_models import RELEASED

META = torch.device("meta")
GRID, SCENES = ({build: name for name, build in models.items()} for models in (MODELS, SLOT_MODELS))  # shared ones once
OF_FACTORQVAE = {"family": "preactivation"}
OWN = {name: setting.hyperparameters("shapes3d")["model"] | OF_FACTORQVAE for name, setting in ABLATIONS.items()} | {
    name: OF_FACTORQVAE for name in ("factorvae", "dvae", "qvae", "factordvae", "factorqvae")
}
EVERY = sorted({*GRID.values(), *ABLATIONS}), sorted(SCENES.values())
EVERY = [(name, "shapes3d") for name in EVERY[0]] + [(name, "sprites") for name in EVERY[1]]


class WithoutStream(TorchFunctionMode):
    "Draws of `meta` tensors take no stream: some of them refuse one, as there is nothing to draw."

    def __torch_function__(self, function, types, arguments=(), named=None):
        return function(*arguments, **{k: v for k, v in (named or {}).items() if k != "generator"})


class AllOnMeta(TorchDispatchMode):
    "Every tensor that an operation takes or makes is on the `meta` device, or is remembered in `strays`."

    def __init__(self):
        super().__init__()
        self.strays = set()

    def __torch_dispatch__(self, operation, types, arguments=(), named=None):
        made = operation(*arguments, **(named or {}))
        tensors = [leaf for leaf in tree_leaves((arguments, named, made)) if isinstance(leaf, torch.Tensor)]
        self.strays |= {f"{operation} on {t.device}" for t in tensors if t.device != META}
        return made


def steps_on_meta(model):
    "Each different step of a training, from images as they come; `AssertionError` for a tensor elsewhere."
    images = torch.empty((2, 64, 64, 3), dtype=torch.uint8, device=META)
    model.to(META).anneal(0.3)
    with AllOnMeta() as seen, WithoutStream():
        for step in {step.loss: step for step in model.steps()}.values():
            loss, terms = step.loss(images, make_generator(0))
            gradients = torch.autograd.grad(loss, step.parameters, allow_unused=True)
            assert {t.device for t in (loss, *terms.values(), *gradients) if t is not None} == {META}
            assert any(gradient is not None for gradient in gradients), "nothing follows the loss"
    with AllOnMeta() as probed, WithoutStream():
        model.encode(images)  # without a stream, as probes do
    drawn = any(getattr(part, "draws_start", False) for part in model.modules())  # on the CPU, for every device alike
    strays = seen.strays | (set() if drawn else probed.strays)
    assert not strays, f"not on the model's device: {sorted(strays)}"


def test_every_model_is_here():
    made = {MODELS[name] if dataset == "shapes3d" else SLOT_MODELS[name] for name, dataset in EVERY}
    assert made == {*MODELS.values(), *SLOT_MODELS.values()} and {*MODELS, *SLOT_MODELS} == set(list_models())


@pytest.mark.parametrize(("name", "dataset"), EVERY)
def test_a_models_steps_touch_no_other_device_and_read_nothing_back(name, dataset):
    steps_on_meta(create_model(name, dataset=dataset, width=0.1, **OWN.get(name, {})))


@pytest.mark.parametrize("name", RELEASED)
def test_released_slot_models_touch_no_other_device_and_read_nothing_back(name):
    steps_on_meta(create_model(name, dataset="sprites", net="code", width=0.1))


def of_cpu(model, images, generator=None):
    loss, terms = type(model).loss(model, images, generator)
    return loss + 0 * (images[:, 0, 0].float() @ torch.ones(3, 1)).sum(), terms


def read_back(model, images, generator=None):
    loss, terms = type(model).loss(model, images, generator)
    return loss * float(loss.detach() > 0), terms


@pytest.mark.parametrize(("fault", "error"), [(of_cpu, AssertionError), (read_back, RuntimeError)])
def test_a_step_with_a_fault_is_seen(fault, error):
    model = create_model("qlae", dataset="shapes3d", width=0.1)
    with patch.object(model, "loss", lambda *given: fault(model, *given)), pytest.raises(error, match="cpu|meta"):
        steps_on_meta(model)
