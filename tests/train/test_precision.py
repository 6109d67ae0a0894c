"Training with networks in bf16; that every model takes such a step is in `whole/test_every_step.py`."

from copy import deepcopy
from pathlib import Path

import pytest
import torch
from steps import CASES, GIVEN, different_steps, new_training, random_images, seen_types
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from disentangle_repro.baselines.vqvae import VectorQuantizer
from disentangle_repro.core.device import float32_products, float32_products_in, make_generator
from disentangle_repro.factorqvae.scalar_codes import ScalarQuantizer
from disentangle_repro.models import create_model
from disentangle_repro.qlae import LatentQuantizer
from disentangle_repro.train import fit
from disentangle_repro.train import precision as chapter
from disentangle_repro.tripod import FiniteScalarQuantizer


def test_a_loss_that_raises_leaves_nothing_behind():
    training = new_training("grid", "infowgan_gp")
    training.model.latent.forward = None  # of its own, which must stay
    with pytest.raises(TypeError):
        training.update()
    assert not any("forward" in vars(network) for network in training.model.networks)
    assert "forward" in vars(training.model.latent)


@pytest.mark.parametrize(("name", "backward"), [("ae", "tf32"), ("infowgan_gp", "ieee"), ("tripod", "ieee")])
def test_tf32_is_on_in_the_passes_that_bf16_may_have_and_nowhere_else(name, backward):
    training, seen = new_training("grid", name), {}
    training.precision = "tf32"
    encoder, latent = training.model.encoder, training.model.latent

    def note(where):
        seen[where] = float32_products()["convolution"]

    with float32_products_in("ieee"):
        encoder.register_forward_pre_hook(lambda *_: note("before"))
        first = next(encoder.parameters())
        first.register_hook(lambda _: note("backward"))
        next(encoder.children()).register_forward_hook(lambda *_: note("encoder"))
        latent.register_forward_pre_hook(lambda *_: note("latent"))
        training.update()
        assert set(float32_products().values()) == {"ieee"}
    assert seen["encoder"] == "tf32" and seen["latent"] == "ieee" and seen["backward"] == backward


OWN_LOSSES = [("grid", name) for name in ("ae", "infowgan_gp", "factorvae", "tripod")]
OWN_LOSSES += [("slots", name) for name in ("sa", "monet", "psa", "transformer-transformer-rec_kl")]


@pytest.mark.parametrize(("kind", "name"), OWN_LOSSES)
def test_a_model_in_float64_computes_in_float64_and_one_in_half_precision_is_refused(kind, name):
    model, images = create_model(name, **GIVEN[kind]).double(), random_images(4, 64 if kind == "grid" else 16)
    for step in different_steps(model):
        loss, terms = step.loss(images, make_generator(1))
        assert {value.dtype for value in (loss, *terms.values())} == {torch.float64}
    with torch.no_grad():
        assert model.decode(model.encode(images)).dtype == torch.float64
    with pytest.raises(ValueError, match="parameters of torch.bfloat16, but its latent layer and losses need"):
        model.bfloat16().encode(images)


@pytest.mark.parametrize("layer", [
    VectorQuantizer(dim=2, n_values=512), ScalarQuantizer(n_values=512, dim=2), ScalarQuantizer(n_values=300),
    LatentQuantizer(1, n_values=300), FiniteScalarQuantizer(1, n_values=300),
])  # fmt: skip
def test_indices_are_whole_numbers_that_bf16_does_not_round(layer):
    "bf16 has no whole numbers between 256 and 258."
    encoded = 3 * torch.randn(4_000, layer.encoder_dims, generator=make_generator(0)).bfloat16()
    code = layer.bfloat16().code(encoded)
    index = layer.index(code)
    assert index.dtype == torch.float32 and index.equal(index.round()) and index.min() >= 0
    if layer.categorical:
        assert any(number % 2 for number in code.int().flatten().tolist() if number > 256)
        assert layer.embed(torch.full((1, 1), 511.0, dtype=torch.bfloat16)).isfinite().all(), "rounded to 512"


def test_a_forward_of_a_networks_own_comes_back():
    model = create_model("ae", **GIVEN["grid"])
    own = model.encoder.forward = nn.Module.forward.__get__(model.encoder)
    with chapter.networks_in("bf16", model):
        with chapter.networks_in("bf16", model):
            pass
        assert model.encoder.forward is not own and "forward" in vars(model.decoder)
    assert vars(model.encoder)["forward"] is own and "forward" not in vars(model.decoder)


@pytest.mark.parametrize("name", ["infowgan_gp", "qlinfowgan_gp"])
@pytest.mark.parametrize("protocol", ["paper", "code"])
def test_networks_are_lowered_once(protocol, name, monkeypatch):
    "The released critic shares the encoder's convolutions."
    calls, lower = [], chapter.in_bfloat16
    monkeypatch.setattr(chapter, "in_bfloat16", lambda forward, kind: calls.append(forward) or lower(forward, kind))
    model = create_model(name, **GIVEN["grid"], protocol=protocol)
    with chapter.networks_in("bf16", model):
        assert [call.__self__ for call in calls] == [model.encoder, model.decoder, model.critic]


@pytest.mark.parametrize("kind,name", [("grid", "qlae"), ("slots", "monet"), ("slots", "sa")])
def test_outside_training_nothing_is_rounded(kind, name):
    training = new_training(kind, name)
    training.update()
    fresh = create_model(name, **GIVEN[kind])
    fresh.load_state_dict(training.model.state_dict())
    with torch.no_grad():
        latents, expected = training.model.encode(training.images), fresh.encode(training.images)
        assert latents.equal(expected) and training.model.decode(latents).equal(fresh.decode(latents))


def test_the_hessian_penalty_stays_in_float32():
    "Its decoder passes, and its value, are those of fp32 for the same latents."
    training = new_training("grid", "tripod")
    latents, scales = 2 * torch.rand(4, 12, generator=make_generator(1)) - 1, torch.ones(12)
    outside = training.model.curvature(latents, scales, make_generator(2))
    with chapter.networks_in("bf16", training.model):
        assert training.model.curvature(latents, scales, make_generator(2)).equal(outside)


def test_the_gradient_penalty_stays_in_float32():
    training = new_training("grid", "infowgan_gp")
    images = training.images[:4]
    made = training.model.generate(4, make_generator(0), images.device)
    training.model.generate = lambda *_: tuple(x.detach() for x in made)
    outside = training.model.critic_loss(images, make_generator(1))[1]
    with chapter.networks_in("bf16", training.model):
        inside = training.model.critic_loss(images, make_generator(1))[1]
    assert inside["gradient_penalty"].equal(outside["gradient_penalty"])
    assert not inside["critic_value"].equal(outside["critic_value"])


@pytest.mark.parametrize("kind,name", [("grid", "factorqvae"), ("slots", "psa_proj")])
def test_a_resumed_training_in_bf16_is_the_same(kind, name, tmp_path):
    whole, first, second = (new_training(kind, name) for _ in range(3))
    fit(whole, 6, log_every=1, progress=False)
    prepare = first.prepare

    def interrupted() -> None:
        if first.updates == 5:
            raise KeyboardInterrupt
        prepare()

    first.prepare = interrupted
    with pytest.raises(KeyboardInterrupt):
        by_updates = {"checkpoint_seconds": 4, "clock": lambda: first.updates}
        fit(first, 6, log_every=1, checkpoint=tmp_path / "checkpoint.pt", **by_updates, progress=False)
    fit(second, 6, log_every=1, checkpoint=tmp_path / "checkpoint.pt", progress=False)
    assert second.updates == 6 and [p["loss"] for p in second.curve] == [p["loss"] for p in whole.curve]
    for ours, theirs in zip(whole.model.state_dict().values(), second.model.state_dict().values(), strict=True):
        assert ours.equal(theirs)


class Bfloat16Products(TorchDispatchMode):
    "Counts the products that are done with bf16 instructions, forward and backward."

    names = ("convolution", "mm", "addmm", "bmm", "baddbmm", "scaled_dot_product")

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = [x.dtype for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if torch.bfloat16 in given and any(name in function.name() for name in self.names):
            self.seen.append(function.name())
        return function(*args, **(kwargs or {}))


KIN = ("qlae", "tripod", "factorqvae", "infowgan_gp", "sa", "psa_proj", "monet",
       "transformer-transformer-rec_kl_interact")  # fmt: skip


@pytest.mark.parametrize("kind,name", [case for case in CASES if case[1] in KIN])
def test_without_bf16_instructions_none_is_used(kind, name, monkeypatch):
    monkeypatch.setattr(chapter, "multiplies_bfloat16", lambda device: False)
    training = new_training(kind, name, **({"critic_steps": 1} if "wgan" in name else {}))
    hooks, outputs, _ = seen_types(training.model)
    with Bfloat16Products() as products:
        for _ in training.steps:
            training.update()
    assert not products.seen
    assert torch.bfloat16 in set().union(*outputs.values())


def test_with_and_without_bf16_instructions_the_loss_is_the_same(monkeypatch):
    losses = {}
    for there in (True, False):
        monkeypatch.setattr(chapter, "multiplies_bfloat16", lambda device, there=there: there)
        training = new_training("grid", "qlae")
        with Bfloat16Products() as products:
            losses[there] = training.update()["loss"].item()
        assert bool(products.seen) == there
    assert losses[True] == pytest.approx(losses[False], rel=1e-3)


def test_bf16_needs_a_processor_that_multiplies_it(tmp_path, monkeypatch):
    cpuinfo = tmp_path / "cpuinfo"
    cases = {"fpu avx512f avx512_bf16 x": True, "fpu amx_bf16 amx_tile": True, "fpu avx512f avx2": False}
    flags = chapter.processor_flags
    for line, expected in cases.items():
        cpuinfo.write_text(f"processor\t: 0\nvmx flags\t: amx_bf16\nflags\t\t: {line}\n")
        monkeypatch.setattr(chapter, "processor_flags", lambda: flags.__wrapped__(cpuinfo))
        assert chapter.multiplies_bfloat16("cpu") == expected
    cpuinfo.write_text("processor\t: 0\nFeatures\t: fp asimd bf16\n")
    assert not chapter.multiplies_bfloat16("cpu")


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="needs Linux")
def test_the_processors_flags_are_those_that_pytorch_knows(tmp_path):
    known = chapter.processor_flags(tmp_path / "missing")
    if not known:
        pytest.skip("this PyTorch does not tell")
    for name in ("avx512_bf16", "amx_bf16", "avx2"):
        assert (name in known) == (name in chapter.processor_flags())


class Types(TorchFunctionMode):
    "Which functions are called inside networks, with the types of what they return."

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.__getitem__:  # which would look for a GPU
            result = args[0].new_empty(torch.empty(args[0].shape, device="meta")[args[1]].shape)
        else:
            result = function(*args, **(kwargs or {}))
        kinds = [x.dtype for x in tree_leaves(result) if isinstance(x, torch.Tensor) and x.is_floating_point()]
        if kinds and torch.bfloat16 in [x.dtype for x in tree_leaves((args, result)) if isinstance(x, torch.Tensor)]:
            self.seen.append((getattr(function, "__name__", str(function)), *kinds))
        return result


def network_types(network, inputs, device: str) -> list:
    "The types inside a network in bf16, on a fake device: with shapes and types, and no numbers."
    types = Types()
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        network.to_empty(device=device)
        given = tree_map(lambda x: torch.empty(x.shape, dtype=x.dtype, device=device), inputs)

        def watched(*given):
            with types:
                return network.forward(*given)

        chapter.in_bfloat16(watched, device)(*given)
    return types.seen


@pytest.mark.parametrize("kind,name", [case for case in CASES if case[1] in KIN])
def test_a_gpu_computes_in_the_types_of_the_cpu(kind, name, monkeypatch):
    "Without one: autocast is told that there is one, and tensors are fake."
    monkeypatch.setattr("torch.cuda.amp.common.amp_definitely_not_available", lambda: False)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda **_: True)
    monkeypatch.setattr(chapter, "multiplies_bfloat16", lambda device: True)
    training, taken = new_training(kind, name, **({"critic_steps": 1} if "wgan" in name else {})), {}
    for network in training.model.networks:
        network.register_forward_pre_hook(lambda module, given: taken.setdefault(module, given) and None)
    for _ in training.steps:
        training.update()
    compared = 0
    for network, inputs in taken.items():
        found = {}
        for device in ("cpu", "cuda"):
            found[device] = network_types(deepcopy(network), inputs, device)
        assert found["cuda"] == found["cpu"]
        compared += any(torch.bfloat16 in types for _, *types in found["cpu"])
    assert compared == len(taken) > 0
