"Values are those of disentanglement_lib's definitions, on ordinary inputs and in the corners."

import definitions
import numpy as np
import pytest
import torch
from inputs import corners, mixed
from sklearn.metrics import mutual_info_score

from disentangle_repro.metrics import mig, modularity_score
from disentangle_repro.scores.information_gaps import bin_latents, binned_information

CORNERS = corners()
PAIRS = {"mig": (mig, definitions.mig), "modularity": (modularity_score, definitions.modularity)}


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("name", PAIRS)
def test_corners(name, corner):
    ours, theirs = PAIRS[name]
    assert ours(*CORNERS[corner]) == pytest.approx(theirs(*CORNERS[corner]), abs=1e-9)


@pytest.mark.parametrize("bins", [2, 10, 20, 50])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PAIRS)
def test_ordinary_inputs(name, seed, bins):
    sources, latents = mixed(seed, n=700, latents=4 + seed, noise=0.1 * (seed + 1))
    ours, theirs = PAIRS[name]
    assert ours(sources, latents, bins=bins) == pytest.approx(theirs(sources, latents, bins), abs=1e-12)
    assert ours(torch.tensor(sources), torch.tensor(latents), bins) == ours(sources, latents, bins)


@pytest.mark.parametrize("corner", CORNERS)
def test_bins_are_those_of_the_histogram(corner):
    _, latents = CORNERS[corner]
    theirs = np.stack([definitions.in_bins(column) for column in latents.T], axis=1)
    np.testing.assert_array_equal(bin_latents(latents), np.where(np.ptp(latents, axis=0) == 0, 1, theirs) - 1)


def test_one_latent_has_a_modularity_and_no_gap():
    sources, latents = mixed(5)
    assert modularity_score(sources, latents[:, :1]) == pytest.approx(definitions.modularity(sources, latents[:, :1]))
    with pytest.raises(ValueError, match="latents has 1 column: MIG needs at least 2"):
        mig(sources, latents[:, :1])
    with pytest.raises(ValueError, match="sources has 1 column: modularity needs at least 2"):
        modularity_score(sources[:, :1], latents)


def test_information_is_that_of_scikit_learn_to_rounding():
    for seed in range(5):
        sources, latents = mixed(seed, n=300 + 500 * seed)
        binned = bin_latents(latents)
        theirs = [[mutual_info_score(s, z) for z in binned.T] for s in sources.T]
        np.testing.assert_allclose(binned_information(sources, binned), theirs, rtol=0, atol=1e-13)
