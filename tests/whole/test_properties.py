"What holds of every metric whatever it is given: drawn by hypothesis, small, and the same at each run."

import warnings

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from disentangle_repro.asymmetry.slot_jacobian import j_ari, jis
from disentangle_repro.metrics import (
    ari,
    completeness,
    compositional_contrast,
    dci,
    disentanglement,
    fg_ari,
    infomec,
    mbo,
    nmi_matrix,
    psnr,
    sis,
    slot_r2,
    smcc,
)
from disentangle_repro.scores.reconstruction import mse

settings.register_profile("same each time", derandomize=True, deadline=None, database=None, max_examples=12)
settings.load_profile("same each time")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
seeds = st.integers(0, 2**32 - 1)
powers = st.sampled_from([-8.0, -1.0, 0.25, 4.0, 1024.0])  # factors that round nothing
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


@given(representations(), st.booleans(), seeds)
def test_infomec_follows_orders_of_sources_and_latents(representation, discrete, seed):
    sources, latents = representation
    latents, generator = latents.round() if discrete else latents, np.random.default_rng(seed)
    rows, columns = generator.permutation(sources.shape[1]), generator.permutation(latents.shape[1])
    before, after = mec(sources, latents, discrete), mec(sources[:, rows], latents[:, columns], discrete)
    np.testing.assert_allclose(after.nmi, before.nmi[np.ix_(rows, columns)], atol=1e-12)
    np.testing.assert_array_equal(after.active, before.active[columns])
    np.testing.assert_allclose(scores(after), scores(before), atol=1e-3)


@given(representations(), st.booleans(), seeds)
def test_nmi_does_not_ask_for_the_order_of_samples(representation, discrete, seed):
    sources, latents = representation
    latents, order = latents.round() if discrete else latents, np.random.default_rng(seed).permutation(len(sources))
    before, after = (nmi_matrix(sources[o], latents[o], discrete=discrete) for o in (slice(None), order))
    np.testing.assert_allclose(after, before, atol=1e-9)


@given(representations(), st.booleans(), powers, st.sampled_from([0.0, 3.0]))
def test_infomec_ignores_units_and_offsets(representation, discrete, factor, offset):
    sources, latents = representation
    latents = latents.round() if discrete else latents
    before, after = mec(sources, latents, discrete), mec(sources, latents * factor + offset, discrete)
    np.testing.assert_allclose(after.nmi, before.nmi, atol=1e-9)
    np.testing.assert_allclose(scores(after), scores(before), atol=1e-3)


@given(representations())
def test_infomec_of_discrete_latents_ignores_names_of_values(representation):
    sources, latents = representation
    latents = latents.round().clip(-4, 4)
    before = nmi_matrix(sources, latents, discrete=True)
    np.testing.assert_allclose(nmi_matrix(7 - 3 * sources, np.exp(latents), discrete=True), before, atol=1e-12)


@given(representations(), st.booleans())
def test_infomec_of_constant_latents_is_zero(representation, discrete):
    sources, latents = representation
    found = mec(sources, np.full_like(latents, 0.3), discrete)
    np.testing.assert_allclose(scores(found), 0, atol=1e-9)
    assert not found.active.any()


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



def test_infomec_takes_booleans(beyond_annotations):
    sources = np.arange(80).reshape(40, 2) // 3 % 2
    np.testing.assert_array_equal(mec(sources, sources > 0, True).nmi, mec(sources, sources, True).nmi)


def test_infomec_takes_whole_numbers_of_eight_bits_with_a_wide_range():
    sources = np.arange(80).reshape(40, 2) // 3 % 2
    narrow = (200 * sources - 100).astype(np.int8)
    assert scores(mec(sources, narrow, True)).tolist() == scores(mec(sources, narrow.astype(float), True)).tolist()


@given(representations(min_latents=2, most_samples=40).filter(lambda r: r[0].shape[1] > 1))
@settings(max_examples=1, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_dci_takes_every_type_of_number(beyond_annotations, representation):
    sources, latents = representation
    whole = (latents - latents.min()).clip(0, 6).round()
    expected = scores(dci(sources, whole, max_depth=2))
    for same in (whole.astype(np.float16), whole.astype(np.uint8), torch.tensor(whole).bfloat16(), whole.tolist()):
        assert (scores(dci(torch.tensor(sources), same, max_depth=2)) == expected).all()


# what is refused, by name


@given(st.sampled_from([np.nan, np.inf, -np.inf]), representations(min_latents=2), seeds, st.booleans())
def test_what_is_not_finite_is_refused_by_name(wrong, representation, seed, as_tensor):
    sources, latents = representation
    row, column = (int(np.random.default_rng(seed).integers(size)) for size in latents.shape)
    latents[row, column] = wrong
    latents = torch.tensor(latents) if as_tensor else latents
    for score in (lambda s, z: infomec(s, z, discrete=False), lambda s, z: infomec(s, z, discrete=True), dci):
        with pytest.raises(ValueError, match=rf"latents\[{row}, {column}\] is {wrong}"):
            score(sources, latents)
        with pytest.raises(ValueError, match=rf"sources\[0, 0\] is {wrong}"):
            score(np.full((len(sources), 2), wrong), np.nan_to_num(latents, posinf=0, neginf=0))


@given(st.sampled_from([np.nan, np.inf, -np.inf]), seeds)
def test_slots_and_jacobians_that_are_not_finite_are_refused_by_name(wrong, seed):
    good = np.random.default_rng(seed).random((6, 3, 2, 2))
    bad = good.copy()
    bad[4, 1, 0, 1] = wrong
    masks = np.arange(24).reshape(6, 2, 2) % 4
    names = {smcc: ("slots_a", "slots_b"), slot_r2: ("slots_a", "slots_b"), sis: ("slots", "latents")}
    for score, (first, second) in names.items():
        with pytest.raises(ValueError, match=rf"{first}\[4, 1, 1\] is {wrong}"):
            score(bad[:, :, 0], good[:, :, 0])
        with pytest.raises(ValueError, match=rf"{second}\[4, 1, 1\] is {wrong}"):
            score(good[:, :, 0], bad[:, :, 0])
    for score in (jis, lambda j: j_ari(j, masks)):
        with pytest.raises(ValueError, match=rf"jacobian\[4, 1, 0, 1\] is {wrong}"):
            score(bad)
    for pair in ((good, bad), (bad, good)):
        for score in (mse, psnr):
            with pytest.raises(ValueError, match="holds numbers from"):
                score(*pair)


@pytest.mark.parametrize("score", [lambda s, z: infomec(s, z, discrete=False), dci])
@pytest.mark.parametrize("shape", [(), (40,), (40, 0), (40, 2, 2)])
def test_anything_but_a_matrix_is_refused_by_name(score, shape):
    sources, latents = np.arange(80).reshape(40, 2) % 3, np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(ValueError, match="latents has shape"):
        score(sources, np.zeros(shape))
    with pytest.raises(ValueError, match="sources has shape"):
        score(np.zeros(shape, int), latents)


@given(representations(min_latents=2), st.integers(0, 2))
def test_a_source_of_one_class_is_refused_by_name(representation, column):
    sources, latents = representation
    column %= sources.shape[1]
    sources[:, column] = 3
    for score in (lambda s, z: infomec(s, z, discrete=False), lambda s, z: infomec(s, z, discrete=True), dci):
        with pytest.raises(ValueError, match=f"sources has one value only in column {column}"):
            score(sources, latents)


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


# DCI


importances = st.builds(
    lambda seed, rows, columns: np.random.default_rng(seed).exponential(size=(rows, columns)) ** 2,
    seeds, st.integers(2, 6), st.integers(2, 6),
)  # fmt: skip


@given(importances, powers.map(abs), seeds)
def test_scores_of_importances(importance, factor, seed):
    order = np.random.default_rng(seed).permutation
    moved = factor * importance[order(len(importance))][:, order(importance.shape[1])]
    for score in (disentanglement, completeness):
        assert 0 <= score(importance) <= 1 + 1e-12
        np.testing.assert_allclose(score(moved), score(importance), atol=1e-12)
    np.testing.assert_allclose(
        completeness(importance * np.geomspace(1, 9, importance.shape[1])), completeness(importance), atol=1e-12
    )
    assert disentanglement(np.eye(4)) == completeness(np.eye(4)[:, order(4)]) == 1


@given(representations(min_latents=2, most_samples=40).filter(lambda r: r[0].shape[1] > 1), powers.map(abs))
@settings(max_examples=3)
def test_dci_lies_in_its_bounds_and_ignores_units(representation, factor):
    sources, latents = representation
    before, after = dci(sources, latents, max_depth=2), dci(sources, latents * factor, max_depth=2)
    assert scores(before).min() >= -1e-12 and scores(before).max() <= 1 + 1e-12
    np.testing.assert_allclose(scores(after), scores(before), atol=1e-12)
    constant = dci(sources, np.zeros_like(latents), max_depth=2)
    np.testing.assert_allclose([constant.d, constant.c], 0, atol=1e-12)


# images


@given(seeds, st.booleans())
def test_errors_of_images(seed, as_bytes):
    a, b = np.random.default_rng(seed).random((2, 5, 4, 4, 3))
    if as_bytes:
        a, b = (np.round(255 * x).astype(np.uint8) for x in (a, b))
    order = np.random.default_rng(seed).permutation(5)
    assert 0 < mse(a, b) <= 1 and mse(a, a) == 0 and psnr(a, a) == np.inf
    assert psnr(a, b) >= 0 and psnr(a, b) == psnr(b, a)
    for score in (mse, psnr):
        np.testing.assert_allclose(score(a[order], b[order]), score(a, b), rtol=1e-12)
        assert score(torch.tensor(a), torch.tensor(b)) == score(a, b)


# masks


@st.composite
def masks(draw):
    generator = np.random.default_rng(draw(seeds))
    shape = draw(st.integers(1, 4)), draw(st.integers(2, 5)), draw(st.integers(2, 5))
    true, predicted = (generator.integers(0, draw(st.integers(2, 5)), size=shape) for _ in range(2))
    true[:, 0, :2] = [0, 1]
    return true, predicted


@given(masks(), seeds)
def test_masks(pair, seed):
    true, predicted = pair
    generator = np.random.default_rng(seed)
    names, order = generator.permutation(5) + generator.integers(-9, 9), generator.permutation(len(true))
    for score in (ari, fg_ari, mbo):
        value = score(true, predicted)
        assert (0 if score is mbo else -1) <= value <= 1
        np.testing.assert_allclose(score(true, true), 1)
        np.testing.assert_allclose(score(true[order], predicted[order]), value, atol=1e-12)
        np.testing.assert_allclose(score(true, names[predicted]), value, atol=1e-12)
        np.testing.assert_allclose(score(true.transpose(0, 2, 1), predicted.transpose(0, 2, 1)), value, atol=1e-12)
        for kind in (torch.uint8, torch.int16, torch.int64):
            assert score(torch.tensor(true).to(kind), torch.tensor(predicted).to(kind)) == value
        with pytest.raises(ValueError, match="holds .*float.*: needed are integers"):
            score(true, predicted.astype(float))
    np.testing.assert_allclose(ari(true, predicted), ari(predicted, true), atol=1e-12)
    assert abs(ari(true, np.zeros_like(true))) < 1e-12, "one segment says nothing"


# slots


@st.composite
def slots(draw, most_dims=4):
    "Slots, and slots of the same images that follow from them with noise."
    generator = np.random.default_rng(draw(seeds))
    shape = draw(st.integers(8, 30)), draw(st.integers(1, 4)), draw(st.integers(1, most_dims))
    a = generator.normal(size=shape)
    return a, a + draw(st.sampled_from([0.01, 0.5])) * generator.normal(size=shape)


def each_in_an_order(array, seed):
    generator = np.random.default_rng(seed)
    order = generator.permuted(np.tile(np.arange(array.shape[1]), (len(array), 1)), axis=1)
    return np.take_along_axis(array, order[:, :, None], axis=1)


@given(slots(), seeds, st.sampled_from(["first", "alternating"]), st.booleans())
def test_slots_in_another_order(pair, seed, matching, held_out):
    a, b = pair
    choices = {"matching": matching, "held_out": held_out}
    assert smcc(a, b, **choices) <= 1 + 1e-12 and slot_r2(a, b, **choices) <= 1 + 1e-12
    first = {"matching": "first", "held_out": held_out}
    np.testing.assert_allclose(smcc(each_in_an_order(a, seed), b, **first), smcc(a, b, **first), atol=1e-9)
    np.testing.assert_allclose(smcc(a, each_in_an_order(a, seed), **first), smcc(a, a, **first), atol=1e-9)


@given(slots(), powers, st.sampled_from([0.0, 3.0]))
def test_slots_in_other_units(pair, factor, offset):
    a, b = pair
    choices = {"matching": "alternating", "held_out": False}
    np.testing.assert_allclose(smcc(a * factor, b, **choices), smcc(a, b, **choices), atol=1e-6)
    for score in (smcc, slot_r2):
        assert score(4 * a, 4 * b) == score(a, b), "both in the same units"
        np.testing.assert_allclose(score(a + offset, b + offset), score(a, b), atol=1e-6)


@given(slots())
def test_slots_of_every_type(pair):
    a, b = ((16 * x).round() for x in pair)
    expected = smcc(a, b), slot_r2(a, b)
    for kind in (torch.float64, torch.float32, torch.float16, torch.int16):
        same = torch.tensor(a).to(kind), torch.tensor(b).to(kind)
        assert (smcc(*same), slot_r2(*same)) == expected
        assert (smcc(*(x.numpy() for x in same)), slot_r2(*(x.numpy() for x in same))) == expected


@given(slots())
def test_slots_that_never_change(pair):
    a, b = pair
    for score in (smcc, slot_r2):
        assert score(a, np.ones_like(b)) == 0, "nothing to be said of what is constant"
        assert score(np.ones_like(a), b) <= 1e-9, "nothing follows from what is constant"


@given(slots(most_dims=2).filter(lambda pair: 1 < pair[0].shape[1] < 4), seeds)
@settings(max_examples=4)
def test_slot_identifiability_lies_in_its_bounds(pair, seed):
    a, b = pair
    value = sis(a, b, predictor="kernel")
    assert -1 <= value <= 1
    assert sis(torch.tensor(a), torch.tensor(b), predictor="kernel") == value
    assert sis(np.ones_like(a), b, predictor="kernel") == 0


# Jacobians


@given(seeds, st.integers(2, 4), powers.map(abs))
def test_jacobians(seed, k, factor):
    generator = np.random.default_rng(seed)
    jacobian, mask = generator.exponential(size=(3, k, 4, 4)), generator.integers(0, 3, size=(3, 4, 4))
    mask[:, 0, 0] = 1
    by_pixel = jacobian * 2.0 ** generator.integers(-5, 5, size=(3, 1, 4, 4))
    for score, least in ((jis, 0), (lambda j: j_ari(j, mask), -1)):
        value = score(jacobian)
        assert least <= value <= 1 + 1e-12
        for same in (jacobian[:, generator.permutation(k)], factor * jacobian, by_pixel, torch.tensor(jacobian)):
            np.testing.assert_allclose(score(same), value, atol=1e-12)
        for kind in (torch.float16, torch.float32):
            rounded = torch.tensor(jacobian).to(kind)
            assert score(rounded) == score(rounded.double())
    assert jis(np.eye(k)[mask % k].transpose(0, 3, 1, 2)) == 1
    np.testing.assert_allclose(jis(np.ones_like(jacobian)), 0, atol=1e-12)


@given(seeds, powers)
@settings(max_examples=6)
def test_compositional_contrast(seed, factor):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(3, 2, 5, generator=generator, dtype=torch.float64)
    z, order = torch.randn(4, 3, 2, generator=generator, dtype=torch.float64), torch.randperm(4, generator=generator)

    def mixed(slots):
        return torch.einsum("bkd,kdo->bo", slots, weights)

    def apart(slots):
        return torch.einsum("bkd,kdo->bko", slots, weights)

    value = compositional_contrast(mixed, z)
    assert value > 0 and compositional_contrast(apart, z) == 0
    np.testing.assert_allclose(compositional_contrast(mixed, z[order]), value, rtol=1e-9)
    scaled = compositional_contrast(lambda slots: factor * mixed(slots), z)
    np.testing.assert_allclose(scaled, factor**2 * value, rtol=1e-9)
