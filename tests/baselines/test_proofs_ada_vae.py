"Each proof check of the models of pairs goes red when its formula is broken, and a training gives them pairs."

import pytest
import torch
from mutations import Chapter, proof_tests

from disentangle_repro.core.device import make_generator
from disentangle_repro.data.pairs import ImagePairs
from disentangle_repro.data.sources import Sources
from disentangle_repro.models import create_model
from disentangle_repro.train import Training, fit, make_optimizer

chapter = Chapter("baselines/10_ada_vae")


divergence, averages = chapter.pair_divergence, chapter.AVERAGES


def other_way_round(first, second):
    return divergence(second, first)


def of_scales(first, second):
    return (first[0] + second[0]) / 2, (first[1] + second[1]) / 2


SHARED, AVERAGES, LOSS = (f"Ada-VAE, Locatello et al., {name}" for name in ("shared latents", "averages", "loss"))
BROKEN = [
    (SHARED, "", "pair_divergence", other_way_round),
    (AVERAGES, "", "AVERAGES", averages | {"arithmetic": of_scales}),
    (LOSS, "", "AVERAGES", averages | {"arithmetic": of_scales}),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, BROKEN)


GRID = Sources(("a", "b", "c"), (3, 4, 2))


def squares(size=64):
    "An image for each combination of a grid."
    images = torch.zeros(GRID.size, size, size, 3, dtype=torch.uint8)
    for image, (a, b, c) in zip(images, GRID.factors(torch.arange(GRID.size)).tolist(), strict=True):
        image[8 * a : 8 * a + 16, 8 * b : 8 * b + 16, c] = 255
    return images


def new_training(name, images, **more):
    model = create_model(name, dataset="shapes3d", width=0.125, n_latents=4, **more)
    optimizer = make_optimizer(model, learning_rate=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.0)
    return Training(model, optimizer, images, batch_size=8, seed=0)


@pytest.mark.parametrize("name", ["ada_gvae", "ada_ml_vae"])
def test_a_training_takes_pairs_and_repeats_itself(name):
    pairs = ImagePairs(squares(), GRID.factors(torch.arange(GRID.size)), differing=2)
    curves = [fit(new_training(name, pairs, differing=2), 3, log_every=1, progress=False) for _ in range(2)]
    assert curves[0] == curves[1] and curves[0][-1]["loss"] < curves[0][0]["loss"]
    assert {*curves[0][0]} == {"updates", "loss", "reconstruction", "kl"}


def test_single_images_are_refused_where_pairs_are_needed():
    with pytest.raises(ValueError, match=r"trained on pairs: give it ImagePairs\(images, sources, differing=2\)"):
        new_training("ada_gvae", squares(), differing=2)


def test_a_model_of_single_images_may_train_on_pairs():
    pairs = ImagePairs(squares(), GRID.factors(torch.arange(GRID.size)))
    assert new_training("dip_vae_i", pairs).update()["loss"].isfinite()


def test_every_set_of_sources_changes_equally_often_in_a_whole_grid():
    "Not every partner: a source of four values has three times the partners of one of two."
    sources = GRID.factors(torch.arange(GRID.size))
    numbered = torch.arange(GRID.size, dtype=torch.uint8).view(-1, 1, 1, 1)
    batch = ImagePairs(numbered, sources).draw(24_000, make_generator(0)).flatten().long()
    first, second = sources[batch].chunk(2)
    often = (first != second).double().mean(0)
    assert (often - 1 / 3).abs().max() < 5 * (2 / 9 / 12_000) ** 0.5, often
