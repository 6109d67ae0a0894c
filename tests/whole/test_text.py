'`protocol="text"` is the letter of the text, computed here from printed formulas in loops, and not what "paper" takes.'

import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from disentangle_repro.core.device import make_generator, seeded
from disentangle_repro.core.errors import PROTOCOLS
from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.factorqvae.scalar_codes import LogitQuantizer, ScalarQuantizer
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.plan.specs import run_spec
from disentangle_repro.lab.runs.jacobians import jacobian_scores
from disentangle_repro.metrics import j_ari, jis
from disentangle_repro.models import create_model
from disentangle_repro.papers import PAPERS
from disentangle_repro.qlae import LatentQuantizer


def test_qlae_s_equation_5_is_squared_norms():
    "|| sg(c) - z ||^2 and || c - sg(z) ||^2 of each image, in every model that has the layer."
    encoded = torch.randn(5, 7, generator=make_generator(0), requires_grad=True)
    layer = LatentQuantizer(7, protocol="text")
    penalties = layer(encoded).penalties
    norm = 0.0
    for row in encoded.detach():
        nearest = torch.stack([layer.codebooks[j][(row[j] - layer.codebooks[j]).abs().argmin()] for j in range(7)])
        norm += sum((row[j] - nearest[j]) ** 2 for j in range(7)) / 5
    for name, moved in (("quantize", layer.codebooks), ("commit", encoded)):
        torch.testing.assert_close(penalties[name], norm)
        assert torch.autograd.grad(penalties[name], moved, retain_graph=True)[0].any(), name
    torch.testing.assert_close(LatentQuantizer(7)(encoded).penalties["commit"] * 7, penalties["commit"])
    for name in ("qlae", "qlae_global_codebook", "tripod_naive", "qlae_klm", "qlinfowgan_gp"):
        assert create_model(name, "shapes3d", protocol="text", width=0.05).latent.protocol == "text"


@pytest.mark.parametrize("kind", [ScalarQuantizer, LogitQuantizer])
def test_factorqvae_s_equation_5_has_the_divergence_of_all_latents(kind):
    "KL(q(z|x) || p(z)) of an image, z having d independent coordinates: of each outcome, log q(z|x) K^d."
    with seeded(0):
        layer, mean = kind(3, protocol="text"), kind(3)
    encoded = torch.randn(4, 2 * layer.encoder_dims, generator=make_generator(0))
    divergence = 0.0
    for q in layer.logits(encoded).softmax(-1):
        joint = torch.outer(q[0], q[1]).flatten()  # of 9 outcomes
        divergence += sum(p * (p * 9).log() for p in joint) / 4
    torch.testing.assert_close(layer(encoded, make_generator(0)).penalties["kl"], divergence)
    mean.codebooks = layer.codebooks
    torch.testing.assert_close(mean(encoded, make_generator(0)).penalties["kl"] * 2, divergence)


def test_scores_of_jacobians_count_every_pixel():
    "Section 6: JIS is the mean over all pixels of the largest share; J-ARI compares whole segmentations."
    jacobian = torch.rand(3, 4, 6, 6, generator=make_generator(0))
    masks = torch.randint(3, (3, 6, 6), generator=make_generator(1))
    largest = [max(pixel) / sum(pixel) for image in jacobian for pixel in image.flatten(1).T.tolist()]
    alike = [adjusted_rand_score(m.flatten(), j.argmax(0).flatten()) for m, j in zip(masks, jacobian, strict=True)]
    assert jis(jacobian, masks > 0, protocol="text") == pytest.approx(sum(largest) / len(largest), abs=1e-6)
    assert j_ari(jacobian, masks, protocol="text") == pytest.approx(sum(alike) / 3, abs=1e-9)
    for protocol in ("paper", "code"):
        assert jis(jacobian, masks > 0, protocol=protocol) == jis(jacobian, masks > 0) < sum(largest) / len(largest)
        assert j_ari(jacobian, masks, protocol=protocol) == j_ari(jacobian, masks, background=0) != sum(alike) / 3


def test_runs_of_asymmetry_are_scored_as_their_protocol_says(monkeypatch):
    asked = []
    monkeypatch.setattr("disentangle_repro.lab.runs.jacobians.jis", lambda *_, protocol: asked.append(protocol))
    monkeypatch.setattr("disentangle_repro.lab.runs.jacobians.j_ari", lambda *_, protocol: asked.append(protocol))
    monkeypatch.setattr("disentangle_repro.lab.runs.jacobians.jacobians_of", lambda *_: torch.ones(1))
    data = type("Data", (), {"masks": torch.ones(1)})
    for protocol in ("paper", "text"):
        name = "transformer-transformer-rec_kl"
        jacobian_scores(create_model(name, "sprites", protocol=protocol, width=0.1), data, torch.ones(1))
    assert asked == ["paper", "paper", "text", "text"]


def test_naive_tripod_s_decoder_normalises_its_activations():
    "Section 4.1: maps have mean 0 and variance 1 in the decoder, and the penalty is of them as they are."
    with seeded(0):
        model = create_model("tripod_naive", "shapes3d", protocol="text", width=0.05)
    z, decoder = torch.randn(2, 12, generator=make_generator(0)), model.decoder
    w, features, layers = decoder.condition(z), decoder.start, []
    layers.append(w)
    for stage in decoder.stages[:3]:
        features = stage(features, w)
        spread = features.var((2, 3), correction=0, keepdim=True)
        features = (features - features.mean((2, 3), keepdim=True)) / (spread + 1e-5).sqrt()
        layers.append(features)
    torch.testing.assert_close(decoder(z), decoder.stages[3](features, w), rtol=1e-3, atol=1e-4)
    seen = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("disentangle_repro.tripod.tripod.hessian_penalty", lambda at, *_, **__: seen.update(at=at))
        model.curvature(z, torch.ones(12), None)
    for found, expected in zip(seen["at"](z), layers, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    with seeded(0):
        plain = create_model("tripod_naive", "shapes3d", width=0.05).decoder
    assert not torch.allclose(plain(z), decoder(z), atol=1e-2)
    with pytest.raises(ValueError, match="needs 'residual'"):
        create_model("tripod_naive", "shapes3d", protocol="text", family="style", width=0.05)


def test_psa_s_slots_are_samples_and_variances_have_no_floor():
    model = create_model("psa_proj", "sprites", protocol="text", width=0.1, image_size=32)
    features = torch.zeros(1, 20, 64)  # all alike: nothing varies
    made = model.latent(features, make_generator(0))
    assert model.latent.sampled and made.variance.max() < 1e-3
    assert not torch.equal(made.slots, made.mean)
    read = create_model("psa_proj", "sprites", width=0.1, image_size=32).latent(features[..., :8], make_generator(0))
    assert torch.equal(read.slots, read.mean) and read.variance.min() > 0.09


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if "text" in PAPERS[paper].protocols])
def test_every_model_can_be_asked_for_by_the_text(paper):
    of = PAPERS[paper]
    for model, row in of.models.items():
        if row.setting and of.run_as(model) == model:
            by = {p: run_spec(paper, model, of.datasets[0], Request(SCALES["smoke"], protocol=p)) for p in PROTOCOLS}
            assert "-text-" in by["text"].id and len({spec.id for spec in by.values()}) == 3
            create_model(model, of.datasets[0], protocol="text", **by["text"].part("model") | {"width": 0.05})
