"The list of proof checks is complete whatever was imported before, and leads to the chapters."

import ast
import json
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from disentangle_repro.core import proof_checks
from disentangle_repro.core.proofs import PROOF_CHECKS, ProofCheck, prove

ROOT = Path(__file__).parents[1]
MODULES = {
    "qlae/infomec.py": "nbs/qlae/02_infomec.ipynb",
    "qlae/latent_quantization.py": "nbs/qlae/01_latent_quantization.ipynb",
    "qlae/quantized_infogan.py": "nbs/qlae/05_quantized_infogan.ipynb",
    "base/variational.py": "nbs/base/02_variational.ipynb",
    "base/bioae.py": "nbs/base/03_bioae.ipynb",
    "base/vqvae.py": "nbs/base/04_vqvae.ipynb",
    "base/infogan.py": "nbs/base/05_infogan.ipynb",
    "base/slot_attention.py": "nbs/base/06_slot_attention.ipynb",
    "base/monet.py": "nbs/base/07_monet.ipynb",
    "base/factorvae.py": "nbs/base/08_factorvae.ipynb",
    "nets/attention.py": "nbs/nets/00_attention.ipynb",
    "nets/slots.py": "nbs/nets/03_slots.ipynb",
    "factorqvae/scalar_codes.py": "nbs/factorqvae/01_scalar_codes.ipynb",
    "factorqvae/density_ratio.py": "nbs/factorqvae/02_total_correlation.ipynb",
    "factorqvae/factorqvae.py": "nbs/factorqvae/03_factorqvae.ipynb",
    "factorqvae/two_dcis.py": "nbs/factorqvae/04_two_dcis.ipynb",
    "asymmetry/interaction.py": "nbs/asymmetry/01_interaction.ipynb",
    "asymmetry/form.py": "nbs/asymmetry/02_form.ipynb",
    "asymmetry/disentanglement.py": "nbs/asymmetry/03_disentanglement.ipynb",
    "asymmetry/composition.py": "nbs/asymmetry/04_composition.ipynb",
    "asymmetry/cross_attention.py": "nbs/asymmetry/05_cross_attention.ipynb",
    "asymmetry/transformer_vae.py": "nbs/asymmetry/06_transformer_vae.ipynb",
    "asymmetry/slot_jacobian.py": "nbs/asymmetry/07_slot_jacobian.ipynb",
    "psa/mixture.py": "nbs/psa/01_slots_as_a_mixture.ipynb",
    "psa/probabilistic_slot_attention.py": "nbs/psa/02_probabilistic_slot_attention.ipynb",
    "psa/aggregate_posterior.py": "nbs/psa/03_aggregate_posterior.ipynb",
    "psa/identifiability.py": "nbs/psa/04_identifiability.ipynb",
    "psa/slot_metrics.py": "nbs/psa/05_slot_metrics.ipynb",
    "psa/mixture_experiment.py": "nbs/psa/06_mixture_experiment.ipynb",
    "tripod/finite_scalar_quantization.py": "nbs/tripod/01_finite_scalar_quantization.ipynb",
    "tripod/kernel_multiinformation.py": "nbs/tripod/02_kernel_multiinformation.ipynb",
    "tripod/hessian_penalty.py": "nbs/tripod/03_hessian_penalty.ipynb",
    "tripod/normalized_hessian_penalty.py": "nbs/tripod/04_normalized_hessian_penalty.ipynb",
    "tripod/tripod.py": "nbs/tripod/05_tripod.ipynb",
    "train/annealing.py": "nbs/train/05_annealing.ipynb",
}
ALONE = "from disentangle_repro.core import proof_checks; print(proof_checks().to_json(orient='values'))"


@pytest.fixture(scope="module")
def listed():
    "Rows (paper, proposition, statement, notebook) as a process sees them that has imported nothing else."
    command = [sys.executable, "-c", ALONE]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [tuple(row) for row in json.loads(printed)]


def decorated(path):
    "What stands in the decorators of a module's source: paper, proposition, statement."
    functions = (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef))
    calls = (call for function in functions for call in function.decorator_list if isinstance(call, ast.Call))
    return [tuple(a.value for a in call.args) for call in calls if getattr(call.func, "id", "") == "proof_check"]


@pytest.mark.parametrize("module", MODULES)
def test_a_chapters_checks_are_listed_with_its_notebook(module, listed):
    of_source = decorated(ROOT / "disentangle_repro" / module)
    assert of_source and Counter(of_source) == Counter(row[:3] for row in listed if row[3] == MODULES[module])


def test_nothing_of_the_package_is_left_out_or_listed_twice(listed):
    of_sources = [check for path in (ROOT / "disentangle_repro").rglob("*.py") for check in decorated(path)]
    assert Counter(of_sources) == Counter(row[:3] for row in listed)
    assert max(Counter(of_sources).values()) == 1


def test_every_notebook_exists(listed):
    assert [notebook for *_, notebook in listed if not (ROOT / notebook).is_file()] == []


def test_no_module_with_checks_of_these_rooms_is_forgotten_here():
    for room in ("qlae", "base", "nets", "tripod", "factorqvae", "asymmetry", "psa", "train"):
        with_checks = {p.name for p in (ROOT / "disentangle_repro" / room).glob("*.py") if decorated(p)}
        assert {f"{room}/{name}" for name in with_checks} == {m for m in MODULES if m.startswith(room)}


def test_the_list_leaves_a_function_with_a_modules_name_alone():
    scores = import_module("disentangle_repro.scores")
    before = scores.dci
    proof_checks()
    assert scores.dci is before and callable(before)


def test_a_check_from_elsewhere_has_no_notebook(monkeypatch):
    check = ProofCheck("x", "Lemma 1", "true", lambda: None)
    monkeypatch.setitem(PROOF_CHECKS, ("x", "Lemma 1", "true"), check)
    (row,) = proof_checks().query("paper == 'x'").itertuples(index=False)
    assert tuple(row) == ("x", "Lemma 1", "true", "")


def test_a_check_that_fails_is_named(monkeypatch):
    def fails():
        raise AssertionError("one is not two")

    check = ProofCheck("nowhere", "lemma 0", "one is two", fails)
    monkeypatch.setitem(PROOF_CHECKS, ("nowhere", "lemma 0", "one is two"), check)
    with pytest.raises(AssertionError, match="lemma 0 .* does not hold: one is not two"):
        prove("nowhere")
