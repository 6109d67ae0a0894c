"The proof check of psa's mixture experiment goes red when what it stands on is broken."

import torch
from mutations import proof_tests
from torch import nn

from disentangle_repro.data.gmm2d import MIXTURE
from disentangle_repro.psa import mixture_experiment

trained = mixture_experiment.train


def left_as_they_are(*runs_and_points):
    return lambda points: points


def untrained(seed, **training):
    return trained(seed, **training | {"updates": 0})


class Moved(nn.Module):
    "Puts each cloud of the plane, known by the mean nearest to a point, in another one's place."

    def __init__(self, places):
        super().__init__()
        self.means, self.places = torch.tensor(MIXTURE.means), places

    def forward(self, points):
        cloud = (points[..., None, :] - self.means).square().sum(-1).argmin(-1)
        return points + (self.means[self.places] - self.means)[cloud]


def with_clouds_in_other_places(seed, **training):
    "As good an autoencoder, but what is where in its latent space is up to the seed."
    run, places = trained(seed, **training), torch.arange(5).roll(seed)
    run.encoder = nn.Sequential(Moved(places), run.encoder)
    run.decoder = nn.Sequential(run.decoder, Moved(places.argsort()))
    return run


FIGURE = "figure 4, aggregate posterior"

BROKEN = [
    (FIGURE, "", "undo", left_as_they_are),
    (FIGURE, "", "train", untrained),
    (FIGURE, "", "train", with_clouds_in_other_places),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(mixture_experiment, BROKEN)
