"Slots of probabilistic slot attention start from the same numbers on every device."

import torch

from disentangle_repro.core.device import make_generator, seeded
from disentangle_repro.psa import probabilistic_slot_attention as chapter


def test_without_a_generator_the_start_is_drawn_on_the_cpu(monkeypatch):
    "Features on `meta` stand for those on a GPU, which would draw other numbers."
    drawn_on, draw = [], chapter.draw
    monkeypatch.setattr(chapter, "draw", lambda mean, *rest: drawn_on.append(mean.device.type) or draw(mean, *rest))
    with seeded(0):
        layer = chapter.ProbabilisticSlotAttention(5, 8)
    start = layer.start(torch.empty(3, 30, 8, device="meta"))
    assert drawn_on == ["cpu"] and start.mean.device.type == "meta" and start.mean.shape == (3, 5, 8)
    on_cpu = layer.start(torch.empty(3, 30, 8)).mean
    assert on_cpu[0].equal(on_cpu[2]) and on_cpu[0].equal(torch.randn(1, 5, 8, generator=make_generator(0))[0])
