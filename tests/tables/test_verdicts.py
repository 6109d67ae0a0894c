"The rule of verdicts against a second program, known truths and broken copies of itself."

import numpy as np
import pytest
from scipy import stats
from sklearn.isotonic import IsotonicRegression

from disentangle_repro.lab.tables import claims, verdicts
from disentangle_repro.lab.tables.claims import (
    Trained,
    as_reported,
    comparisons,
    judge,
    judge_primaries,
    primary_of,
    read_claims,
)
from disentangle_repro.lab.tables.layout import not_told_from_best, reported_numbers
from disentangle_repro.lab.tables.verdicts import DIRECTED, UNDECIDED, evidence, p_values, seed_difference
from disentangle_repro.papers import PAPERS

EVERY = {claim["id"]: claim for paper in PAPERS for claim in read_claims(paper)}


def by_hand(end, quality):
    "The word for one comparison, from two lists of scores per view, written from the chapter's table of words."
    p = [
        [stats.ttest_ind(a, b, equal_var=False, alternative=way).pvalue for a, b in (end, quality)]
        for way in ("greater", "less")
    ]
    (favour_end, favour_quality), (reverse_end, reverse_quality) = p
    for opposite in ((favour_end, reverse_quality), (reverse_end, favour_quality)):
        if min(opposite) <= 0.008 and max(opposite) <= 0.025:
            return "depends on the training"
    for word, (at_end, at_quality) in (("supported", p[0]), ("reversed", p[1])):
        if max(at_end, at_quality) <= 0.025:
            return word
        if at_end <= 0.008:
            return f"{word} at equal updates only"
        if at_quality <= 0.008:
            return f"{word} at equal quality only"
    return "undecided"


def test_the_words_are_those_of_a_second_program():
    generator, seen = np.random.default_rng(0), set()
    for _ in range(400):
        shifts = generator.choice([-0.2, -0.1, 0, 0.1, 0.2], 2)
        views = [(0.06 * generator.standard_normal(6) + shift, 0.06 * generator.standard_normal(6)) for shift in shifts]
        ways = zip(*(p_values(seed_difference(*view)) for view in views), strict=True)
        word = str(verdicts.verdicts(*(evidence(*(np.array([p]) for p in way)) for way in ways)))
        assert word == by_hand(*views)
        seen.add(word)
    assert seen == {*DIRECTED, UNDECIDED, "depends on the training"}


def size(n=4_000):
    "The share of simulated differences of zero that get a direction, with unequal spreads and independent views."
    generator = np.random.default_rng(1)
    scores = generator.standard_normal((2, 2, n, 6)) * np.array([1, 4])[:, None, None]
    ways = zip(*(p_values(seed_difference(*view)) for view in scores), strict=True)
    words = verdicts.verdicts(*(evidence(*(p[:, None] for p in way)) for way in ways))
    return np.mean(words != UNDECIDED)


def test_a_rule_with_wider_levels_errs_too_often(monkeypatch):
    assert size() <= 0.05
    monkeypatch.setattr(verdicts, "ONE_VIEW", 0.025)
    assert size() > 0.06


def test_the_psnr_of_a_curve_is_isotonic_regression():
    psnr = [18.0, 22.0, 21.0, 25.0, 24.9, 24.0, 27.0]
    assert np.allclose(
        verdicts.monotone_psnr([{"psnr": value} for value in psnr]), IsotonicRegression().fit_transform(range(7), psnr)
    )


@pytest.mark.parametrize(("claim", "word"), [("qlae-1", "supported"), ("qlae-7", "undecided"), ("psa-3", "reversed")])
def test_the_verdict_on_reported_numbers(claim, word):
    assert claims.judge_reported(EVERY[claim]).word == word
    assert all(row.ours.end == row.reported for row in as_reported(EVERY[claim]))


def test_without_intervals_nothing_is_judged():
    for name, claim in EVERY.items():
        if name.startswith(("factorqvae", "tripod", "asymmetry")):
            assert claims.judge_reported(claim).word == "cannot be judged"


def trained(mean, seeds, planned=6, diverged=0):
    "A model with scores around a mean, which its probes have as well."
    infom = claims.exact_scores(mean, seeds, 0.02)
    scores = {11 + seed: {"infom": infom[seed], "d": mean, "psnr": 30.0} for seed in range(seeds)}
    curves = {seed: [of | {"psnr": psnr} for psnr in (15.0, 30.0)] for seed, of in scores.items()}
    return Trained(planned, scores, curves, diverged, mean_image=9.0, runs=[f"run-{seed}" for seed in scores])


def compare(left, right, claim="qlae-1"):
    return comparisons(primary_of(EVERY[claim]), {("qlae", "shapes3d"): left, ("ae", "shapes3d"): right})


@pytest.mark.parametrize(("left", "right", "counted"), [(6, 6, 6), (7, 8, 6), (8, 7, 6), (8, 8, 8), (5, 6, 5)])
def test_six_seeds_count_or_eight_of_both(left, right, counted):
    (row,) = compare(trained(0.8, left), trained(0.4, right))
    assert row.ours.end.seeds == counted and row.complete == (counted >= 6)


def test_a_diverged_run_is_the_word_whatever_the_others_say():
    rows = compare(trained(0.8, 5, diverged=1), trained(0.4, 6))
    assert judge(EVERY["qlae-1"], rows).word == "diverged (1 of 11)"
    primary = judge_primaries(
        {"qlae": {("qlae", "shapes3d"): trained(0.8, 5, diverged=1), ("ae", "shapes3d"): trained(0.4, 6)}}
    )
    assert primary["qlae-1"].word == "diverged (1 of 11)"


def test_primaries_are_five_and_judged_together():
    clear = {("qlae", "shapes3d"): trained(0.44, 6), ("ae", "shapes3d"): trained(0.4, 6)}
    together = judge_primaries({"qlae": clear})
    assert len(together) == 5 and together["qlae-1"].word == "supported"
    weak = {where: trained(mean, 6) for where, mean in ((("qlae", "shapes3d"), 0.4293), (("ae", "shapes3d"), 0.4))}
    assert judge(primary_of(EVERY["qlae-1"]), comparisons(primary_of(EVERY["qlae-1"]), weak)).word == "supported"
    assert judge_primaries({"qlae": weak})["qlae-1"].word == UNDECIDED, "five times its p is above the level"


def test_best_in_most_needs_every_baseline_of_a_setting():
    claim = EVERY["factorqvae-1"]
    models = {("factorqvae", "shapes3d"): trained(0.9, 6)} | {
        (name, "shapes3d"): trained(0.5, 6) for name in claim["right"]
    }
    models = {where: Trained(6, {s: {"d": v["infom"], "psnr": 30.0} for s, v in of.scores.items()},
              {s: [{"d": p["infom"], "psnr": p["psnr"]} for p in c] for s, c in of.curves.items()}, mean_image=9.0,
              runs=of.runs) for where, of in models.items()}  # fmt: skip
    verdict = judge(claim, comparisons(claim, models))
    assert verdict.word == "supported" and "1 of 3 data sets" in verdict.part
    models.pop(("qvae", "shapes3d"))
    assert judge(claim, comparisons(claim, models)).word == "not run"


def test_bold_is_what_does_not_differ_from_the_best():
    "Written off qlae's table 12: QLAE alone leads InfoM; AE, beta-VAE, BioAE and QLAE share InfoE; InfoGANs apart."
    reported = reported_numbers("qlae").query("table == '12'").reset_index(drop=True)
    cells = reported.rename(columns={"value": "reported", "ci95": "reported_ci95"}).assign(seeds=1)
    bold = cells[not_told_from_best(cells, "reported")]
    models = {metric: set(bold[bold.metric == metric].model) for metric in ("infom", "infoe")}
    assert models["infom"] >= {"qlae", "qlinfowgan_gp"} and not models["infom"] & {"ae", "beta_vae", "vqvae"}
    assert models["infoe"] >= {"ae", "beta_vae", "bioae", "qlae", "vqvae"} and "beta_tcvae" not in models["infoe"]
    one_seed = cells.rename(columns={"reported": "ours", "reported_ci95": "ours_ci95"})
    assert not not_told_from_best(one_seed, "ours").any(), "one seed differs from nothing"
