"What pruning saves is a share of operations, listed layer by layer, and the contrast is a mean over 64 images."

import pytest
import torch
from torch import nn

from disentangle_repro.experiment.run_spec import RunSpec
from disentangle_repro.lab.runs import slots as chapter
from disentangle_repro.lab.runs.assemble import score
from disentangle_repro.lab.runs.slots import held_out_scenes, relevance_scores
from disentangle_repro.models import create_model


def listed(module, call):
    "Multiplications and additions of a module's convolutions and dense layers in a call, from shapes."
    total, hooks = 0, []

    def count(layer, inputs, output):
        nonlocal total
        if isinstance(layer, nn.Linear):
            total += 2 * output.numel() * layer.in_features
        else:  # every output of a convolution, every input of a transposed one, meets the whole kernel
            places, others = (inputs[0], layer.out_channels), (output, layer.in_channels)
            numbers, channels = places if isinstance(layer, nn.ConvTranspose2d) else others
            total += 2 * numbers.numel() * channels * layer.kernel_size[0] * layer.kernel_size[1]

    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)):
            hooks.append(layer.register_forward_hook(count))
    call()
    for hook in hooks:
        hook.remove()
    return total


@pytest.mark.parametrize("name", ["psa", "psa_noa"])
def test_saved_are_operations_of_the_decoder_and_not_slots(monkeypatch, name):
    monkeypatch.setattr(chapter, "THRESHOLD", 0.19)  # of five slots of an untrained model some are below
    scenes = held_out_scenes("sprites", "rendered", 12)
    model = create_model(name, dataset="sprites", width=0.125, dim=16).eval()
    with torch.no_grad():
        encode = lambda: model.latent(model.encoder(chapter.to_network(scenes.images)))  # noqa: E731
        made = encode()
        used = int((made.weight > 0.19).sum(1).min())
        assert used < 5
        one = chapter.to_network(scenes.images[:1])
        encoder = listed(model, lambda: model.encoder(one))
        whole, pruned = (listed(model.decoder, lambda n=n: model.decoder(made.slots[:1, :n])) for n in (5, used))
        t, n, k, d = model.latent.iterations, model.encoder(one).shape[1], 5, 16
        maps = 4 * n * d * d if model.latent.projected else 0
        attention = t * (8 * n * k * d + 2 * k * d * d) + maps
    expected = 100 * (whole - pruned) / (encoder + attention + whole)
    found = relevance_scores(model, scenes)["flops_saving_percent_max"]
    assert abs(found - expected) < 0.01, f"{found:.2f}% but {expected:.2f}% are listed"


@pytest.mark.parametrize(("scale", "expected"), [("smoke", 2), ("study", 64), ("paper", 64)])
def test_the_contrast_is_a_mean_over_64_images_at_every_scale_with_numbers(monkeypatch, scale, expected):
    seen = []
    monkeypatch.setattr(chapter, "compositional_contrast", lambda decoder, slots: seen.append(len(slots)) or 0.0)
    monkeypatch.setattr(chapter, "encode_all", lambda *_, **__: torch.zeros(100, 5, 16))
    for name in ("reconstruction_scores", "relevance_scores", "truth_scores"):
        monkeypatch.setattr(chapter, name, lambda *_, **__: {})
    few = held_out_scenes("sprites", "rendered", 2, device=torch.device("cpu"))
    spec = RunSpec("psa", "sa", "sprites", "rendered", scale, 0, "paper", {})
    score(spec, create_model("sa", dataset="sprites", width=0.125, dim=16), few)
    assert seen == [expected]
