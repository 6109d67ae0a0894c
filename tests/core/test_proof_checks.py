"The list of proof checks is complete whatever was imported before, and leads to the chapters."

import ast
import builtins
import json
import re
import subprocess
import symtable
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from disentangle_repro.core import proof_checks
from disentangle_repro.core.proofs import PROOF_CHECKS, ProofCheck, prove

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "disentangle_repro"
PROOFS = [path for path in sorted(PACKAGE.glob("*/proofs.py")) if path.parent.name != "core"]
FOLDERS = [path.parent.name for path in PROOFS]
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "_modidx.py")
ALONE = "from disentangle_repro.core import proof_checks as c; print(c().iloc[:, :4].to_json(orient='values'))"
ALL_ELSE = """
import importlib, pkgutil, sys
import disentangle_repro as package
for name in [module.name for module in pkgutil.walk_packages(package.__path__, "disentangle_repro.")]:
    if name == "disentangle_repro.core.proofs" or not name.endswith(".proofs"):
        importlib.import_module(name)
print(*(name for name in sys.modules if name.startswith("disentangle_repro.") and name.endswith(".proofs")))
"""
APART = """
import os, sys
import pandas, sklearn.ensemble, sympy, torch  # what is slow and not ours, once for all programs
for program in sys.argv[1:]:
    if not (child := os.fork()):
        exec(program, {})
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.fixture(scope="module")
def printed():
    "The line that each program prints, in a process of its own that has imported nothing else of the package."
    command = [sys.executable, "-c", APART, ALONE, ALL_ELSE]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.fixture(scope="module")
def listed(printed):
    "Rows (paper, proposition, statement, notebook)."
    return [tuple(row) for row in json.loads(printed[0])]


def decorated(source):
    "What stands in the decorators of a source text: paper, proposition, statement."
    functions = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    calls = (call for function in functions for call in function.decorator_list if isinstance(call, ast.Call))
    return [tuple(a.value for a in call.args) for call in calls if getattr(call.func, "id", "") == "proof_check"]


def exported(notebook, module):
    "Cells that a notebook exports to a module other than its own."
    cells = json.loads((ROOT / notebook).read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["source"][:1] == [f"#| export {module}\n"]]


NOTEBOOKS = [  # with checks
    name
    for folder in FOLDERS
    for name in sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(f"nbs/{folder}/*.ipynb"))
    if any("@proof_check" in "".join(cell["source"]) for cell in exported(name, f"{folder}.proofs"))
]


def test_a_chapters_checks_are_listed_with_its_notebook(listed):
    for notebook in NOTEBOOKS:
        cells = exported(notebook, f"{notebook.split('/')[1]}.proofs")
        of_chapter = [check for cell in cells for check in decorated("".join(cell["source"]))]
        expected = Counter(row[:3] for row in listed if row[3] == notebook)
        assert of_chapter and Counter(of_chapter) == expected, notebook


def proven(notebook):
    "Papers and propositions for which a chapter calls `prove`; None for all propositions of a paper."
    cells = json.loads((ROOT / notebook).read_text(encoding="utf-8"))["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "code" for line in "".join(cell["source"]).splitlines()]
    calls = (ast.parse(line).body[0].value for line in lines if line.startswith("prove("))
    return {(*(argument.value for argument in call.args), None)[:2] for call in calls}


def test_every_check_is_run_by_its_chapter(listed):
    run = {notebook: proven(notebook) for notebook in NOTEBOOKS}
    assert [row for row in listed if not run[row[3]] & {(row[0], None), row[:2]}] == []


def test_nothing_of_the_package_is_left_out_or_listed_twice(listed):
    of_sources = [check for path in PROOFS for check in decorated(path.read_text())]
    assert Counter(of_sources) == Counter(row[:3] for row in listed)
    assert max(Counter(of_sources).values()) == 1


def test_checks_are_in_modules_of_proofs_alone():
    others = [path for path in PACKAGE.rglob("*.py") if path not in PROOFS]
    assert [str(path) for path in others if decorated(path.read_text())] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_module_of_proofs_has_every_cell_once_and_in_the_order_of_chapters(folder):
    chapters = sorted(ROOT.glob(f"nbs/{folder}/*.ipynb"))
    wanted = [cell["id"] for name in chapters for cell in exported(name, f"{folder}.proofs")]
    found = re.findall(r"^# %% \S+\.ipynb #(\w+)$", (PACKAGE / folder / "proofs.py").read_text(), re.MULTILINE)
    assert wanted and found[1:] == wanted  # the first has the imports


def free_names(table):
    "Names that a source reads from its module, at any depth."
    module = table.get_type() == "module"
    own = {s.get_name() for s in table.get_symbols() if s.is_referenced() and (module or s.is_global())}
    return own.union(*map(free_names, table.get_children()))


def test_modules_import_every_name_that_they_read():
    missing = {}
    for path in MODULES:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        used = free_names(symtable.symtable(path.read_text(), str(path), "exec"))
        missing[name] = sorted(used - set(vars(import_module(name))) - set(dir(builtins)))
    missing = {name: names for name, names in missing.items() if names}
    assert missing == {}, "no exported cell imports these; what checks use is imported in nbs/proofs"


def test_importing_all_else_imports_no_proofs(printed):
    assert printed[1].split() == ["disentangle_repro.core.proofs"]


def test_a_check_from_elsewhere_has_no_notebook(monkeypatch):
    check = ProofCheck("x", "Lemma 1", "true", lambda: None)
    monkeypatch.setitem(PROOF_CHECKS, ("x", "Lemma 1", "true"), check)
    (row,) = proof_checks().query("paper == 'x'").itertuples(index=False)
    assert tuple(row)[:4] == ("x", "Lemma 1", "true", "")


def test_a_check_that_fails_is_named(monkeypatch):
    def fails():
        raise AssertionError("one is not two")

    check = ProofCheck("nowhere", "lemma 0", "one is two", fails)
    monkeypatch.setitem(PROOF_CHECKS, ("nowhere", "lemma 0", "one is two"), check)
    with pytest.raises(AssertionError, match="lemma 0 .* does not hold: one is not two"):
        prove("nowhere")


@pytest.mark.parametrize("call", ["proofs.prove('qlae')", "proofs.run_checks()", "metrics.check_metric(None)"])
def test_where_python_leaves_out_assertions_nothing_passes(call):
    program = f"from disentangle_repro import metrics; from disentangle_repro.core import proofs; {call}"
    done = subprocess.run([sys.executable, "-O", "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode and "consists of assertions, which Python leaves out" in done.stderr.splitlines()[-1]
