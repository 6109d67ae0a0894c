"What holds of every metric whatever it is given: drawn by hypothesis, small, and the same at each run."

import warnings

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from disentangle_repro.metrics import (
    dci,
    infomec,
    sis,
    slot_r2,
    smcc,
)

settings.register_profile("same each time", derandomize=True, deadline=None, database=None, max_examples=12)
settings.load_profile("same each time")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
seeds = st.integers(0, 2**32 - 1)
NUMPY = (np.float64, np.float32, np.float16, np.int64, np.int16, np.uint8)
TORCH = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8)


@st.composite
def representations(draw, min_latents=1, most_samples=80):
    "Sources with two to five values, each of them seen, and latents that know something of them."
    generator = np.random.default_rng(draw(seeds))
    n, k, d = draw(st.integers(30, most_samples)), draw(st.integers(1, 3)), draw(st.integers(min_latents, 5))
    sources = generator.integers(0, generator.integers(2, 6, size=k), size=(n, k))
    sources[:10] = np.arange(10)[:, None] % 2
    noise = draw(st.sampled_from([0.1, 1.0])) * generator.normal(size=(n, d))
    return sources, sources @ generator.normal(size=(k, d)) + noise


def scores(found):
    names = ("infom", "infoe", "infoc") if hasattr(found, "infom") else ("d", "i", "c")
    return np.array([getattr(found, name) for name in names])


def quiet(metric, *arguments, **choices):
    "The metric without the remark that a separable source has no finite optimum."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return metric(*arguments, **choices)


def mec(sources, latents, discrete, **choices):
    return quiet(infomec, sources, latents, discrete=discrete, **choices)


# InfoMEC


@given(representations(), st.booleans(), st.sampled_from(["paper", "code"]))
def test_infomec_lies_in_its_bounds(representation, discrete, protocol):
    sources, latents = representation
    found = mec(sources, latents.round() if discrete else latents, discrete, protocol=protocol)
    lowest = -np.inf if protocol == "code" else 0  # the released code does not clip InfoE
    assert 0 <= found.infom <= 1 + 1e-12 and 0 <= found.infoc <= 1 + 1e-12 and lowest <= found.infoe <= 1
    assert found.nmi.shape == (sources.shape[1], latents.shape[1]) and 0 <= found.nmi.min() <= found.nmi.max() <= 1


@given(representations(min_latents=2), st.booleans())
def test_a_constant_latent_is_inactive_and_changes_nothing(representation, discrete):
    sources, latents = representation
    latents = latents.round() if discrete else latents
    before, after = mec(sources, latents, discrete), mec(sources, np.insert(latents, 0, 2.5, axis=1), discrete)
    assert not after.active[0] and (after.active[1:] == before.active).all()
    np.testing.assert_allclose(scores(after), scores(before), atol=1e-3)


@given(seeds, st.integers(4, 12), st.booleans())
def test_infomec_of_more_latents_than_samples(seed, n, discrete):
    generator = np.random.default_rng(seed)
    sources = np.arange(n)[:, None] % 2
    latents = generator.normal(size=(n, 20))
    found = mec(sources, latents.round() if discrete else latents, discrete)
    assert np.isfinite(scores(found)).all() and scores(found).min() >= 0 and scores(found).max() <= 1 + 1e-12


# types of numbers


@given(representations(), st.booleans())
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_infomec_takes_every_type_of_number(beyond_annotations, representation, discrete):
    sources, latents = representation
    whole = (latents - latents.min()).clip(0, 6).round()
    expected = mec(sources, whole, discrete)
    types = [whole.astype(kind) for kind in NUMPY] + [torch.tensor(whole).to(kind) for kind in TORCH]
    for same in [*types, torch.tensor(whole, requires_grad=True), whole.tolist()]:
        found = mec(sources, same, discrete)
        assert (scores(found) == scores(expected)).all() and (found.nmi == expected.nmi).all()
    for same in (torch.tensor(sources), sources.astype(np.float16), sources.astype(np.uint8), sources.tolist()):
        assert (scores(mec(same, whole, discrete)) == scores(expected)).all()


def test_infomec_takes_whole_numbers_of_eight_bits_with_a_wide_range():
    sources = np.arange(80).reshape(40, 2) // 3 % 2
    narrow = (200 * sources - 100).astype(np.int8)
    assert scores(mec(sources, narrow, True)).tolist() == scores(mec(sources, narrow.astype(float), True)).tolist()


# what is refused, by name


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_samples_are_refused_by_name(n):
    sources, latents = np.arange(2 * n).reshape(n, 2), np.arange(2.0 * n).reshape(n, 2)
    for score in (lambda s, z: infomec(s, z, discrete=False), dci):
        with pytest.raises(ValueError, match="sources has|latents has"):
            score(sources, latents)
    with pytest.raises(ValueError, match="slots_a has"):
        smcc(np.ones((n, 2, 2)), np.ones((n, 2, 2)))
    with pytest.raises(ValueError, match="slots has"):
        sis(np.ones((n, 2, 2)), np.ones((n, 2, 2)))


# slots


@st.composite
def slots(draw, most_dims=4):
    "Slots, and slots of the same images that follow from them with noise."
    generator = np.random.default_rng(draw(seeds))
    shape = draw(st.integers(8, 30)), draw(st.integers(1, 4)), draw(st.integers(1, most_dims))
    a = generator.normal(size=shape)
    return a, a + draw(st.sampled_from([0.01, 0.5])) * generator.normal(size=shape)


@given(slots())
def test_slots_that_never_change(pair):
    a, b = pair
    for score in (smcc, slot_r2):
        assert score(a, np.ones_like(b)) == 0, "nothing to be said of what is constant"
        assert score(np.ones_like(a), b) <= 1e-9, "nothing follows from what is constant"
