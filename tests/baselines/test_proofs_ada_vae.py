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


divergence, shared_latents, averages = chapter.pair_divergence, chapter.shared_latents, chapter.AVERAGES
ada_gvae, ada_ml_vae = chapter.ada_gvae, chapter.ada_ml_vae


def other_way_round(first, second):
    return divergence(second, first)


def without_logarithm(first, second):
    return divergence(first, second) + (first[1] / second[1]).log()


def of_means(first, second):
    return (first[0] - second[0]).square()


def below_the_mean(divergence):
    return divergence < divergence.mean(1, keepdim=True)


def below_half_the_largest(divergence):
    return divergence < divergence.amax(1, keepdim=True) / 2


def those_that_changed(divergence):
    return ~shared_latents(divergence)


def all_of_them(divergence):
    return torch.ones_like(divergence, dtype=torch.bool)


def of_scales(first, second):
    return (first[0] + second[0]) / 2, (first[1] + second[1]) / 2


def not_weighted(first, second):
    return (first[0] + second[0]) / 2, averages["product"](first, second)[1]


class OneNoise(chapter.PairLatent):
    "Both images of a pair get one sample of what they share."

    def forward(self, continuous, generator=None):
        mean, scale = self.averaged(*chapter.mean_and_scale(continuous, self.deviation))
        latents = mean + scale * torch.randn(mean.chunk(2)[0].shape, generator=generator).repeat(2, 1)
        return chapter.LatentOutput(latents, self.penalties(latents, mean, scale))


class CostOfTheOwn(chapter.PairLatent):
    "The KL cost is that of the posteriors before they are averaged."

    def forward(self, continuous, generator=None):
        output = super().forward(continuous, generator)
        return output._replace(penalties=self.penalties(None, *chapter.mean_and_scale(continuous, self.deviation)))


class Neighbours(chapter.PairLatent):
    "Pairs are read as neighbouring rows."

    def averaged(self, mean, scale):
        order = torch.arange(len(mean)).view(-1, 2).T.flatten()
        back = order.argsort()
        return tuple(of[back] for of in super().averaged(mean[order], scale[order]))


SHARED, AVERAGES, LOSS = (f"Ada-VAE, Locatello et al., {name}" for name in ("shared latents", "averages", "loss"))
BROKEN = [
    (SHARED, "", "pair_divergence", other_way_round),
    (SHARED, "", "pair_divergence", without_logarithm),
    (SHARED, "", "shared_latents", below_the_mean),
    (SHARED, "", "shared_latents", below_half_the_largest),
    (SHARED, "", "shared_latents", those_that_changed),
    (AVERAGES, "", "AVERAGES", averages | {"arithmetic": of_scales}),
    (AVERAGES, "", "AVERAGES", averages | {"product": averages["geometric"]}),
    (AVERAGES, "", "AVERAGES", averages | {"product": not_weighted}),
    (LOSS, "", "pair_divergence", of_means),
    (LOSS, "", "shared_latents", all_of_them),
    (LOSS, "", "shared_latents", those_that_changed),
    (LOSS, "", "AVERAGES", averages | {"arithmetic": of_scales}),
    (LOSS, "", "AVERAGES", averages | {"product": averages["geometric"]}),
    (LOSS, "", "PairLatent", OneNoise),
    (LOSS, "", "PairLatent", CostOfTheOwn),
    (LOSS, "", "PairLatent", Neighbours),
    (LOSS, "", "ada_gvae", ada_ml_vae),
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
