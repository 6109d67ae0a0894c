"What the public functions say of slots, and the forms that scores come in."

import numpy as np
import pytest
import torch

from disentangle_repro import compare, create_model, plot_nmi, plot_traversals, score
from disentangle_repro.metrics import fg_ari, jis, mbo, slot_jacobian

SLOTS, SOURCES = np.zeros((200, 3, 16)), np.arange(400).reshape(200, 2) % 3
IMAGES = np.random.default_rng(0).integers(256, size=(6, 16, 16, 3), dtype=np.uint8)


def test_slots_are_sent_to_their_scores():
    with pytest.raises(ValueError, match="latents has shape .200, 3, 16.*slots are scored by smcc, slot_r2 and sis"):
        score(SOURCES, SLOTS)
    with pytest.raises(ValueError, match="returned an array of shape .* Slots are scored by smcc and slot_r2"):
        compare({"mine": lambda images: SLOTS[: len(images)]}, IMAGES, SOURCES[:6])
    model = create_model("sa", n_slots=3, image_size=16, width=0.125)
    with pytest.raises(ValueError, match="models\\['sa'\\] is a model of slots: give masks="):
        compare({"sa": model}, IMAGES, SOURCES[:6])
    with pytest.raises(ValueError, match="sources is left out: needed are they, or masks"):
        compare({"mine": lambda images: images}, IMAGES)
    for metric in (fg_ari, mbo):
        with pytest.raises(ValueError, match=r"3, 16, 16\).* For a mask per slot take argmax over the slots"):
            metric(np.ones((6, 16, 16), int), torch.rand(6, 3, 16, 16))


def test_a_model_of_slots_is_compared_by_its_masks_and_decoder():
    model, masks = create_model("sa", n_slots=3, image_size=16, width=0.125).eval(), IMAGES[..., 0] // 86
    compared = compare({"sa": model}, IMAGES / 255, masks=masks, background=[0])
    with torch.no_grad():
        slots, segments = model.encode(torch.tensor(IMAGES)), model.segment(torch.tensor(IMAGES))
    expected = {"fg_ari": fg_ari(masks, segments), "jis": jis(slot_jacobian(model.decoder, slots), masks > 0)}
    scores = compared.scored["sa"].scores
    assert {name: scores[name] for name in expected} == pytest.approx(expected) and "smcc" not in scores
    with pytest.raises(ValueError, match="models are of slots, which have no NMI"):
        compared.plot()


def test_scores_as_a_frame_and_in_latex():
    latents = SOURCES + np.random.default_rng(0).normal(size=SOURCES.shape)
    scored = score(SOURCES, latents, metrics=["mig", "infomec"], halvings=2)
    frame = scored.to_frame()
    assert list(frame.columns) == ["score", "±", "chance", "ceiling", "samples"] and frame.loc["MIG", "samples"] == 200
    assert frame.loc["InfoM", "score"] == scored.scores["infom"]
    latex, value, half = scored.to_latex(), scored.scores["mig"], scored.half_widths["mig"]
    assert "\\toprule" in latex and f"MIG & {value:.3f} $\\pm$ {half:.3f} &" in latex


def test_figures_need_no_more_than_what_they_draw():
    axis = plot_nmi(np.eye(2, 3))
    assert [label.get_text() for label in axis.get_yticklabels()] == ["$s_{0}$", "$s_{1}$"]
    model = create_model("qlae", n_latents=2, image_size=16, width=0.1)
    shown = [plot_traversals(model.encode, model.decode, given).images[0].get_array() for given in (
        torch.tensor(IMAGES), IMAGES, IMAGES.transpose(0, 3, 1, 2) / 255)]  # fmt: skip
    assert np.array_equal(shown[0], shown[1]) and np.array_equal(shown[0], shown[2])
