"A paper's facts stand in its folder: no code outside it names the paper or imports from it, but the list of papers."

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from disentangle_repro.papers import PAPERS
from disentangle_repro.qlae.negative_results import NEGATIVE_RESULTS, varied_setting

PACKAGE = Path(__file__).parents[2] / "disentangle_repro"
NAMED = re.compile(rf"(?<![A-Za-z])({'|'.join(PAPERS)})(?![A-Za-z])")
ALLOWED = {
    "papers.py": "the list",
    "models.py": "models of all papers by name, one of which is called like its paper",
    "metrics.py": "scores of all papers by name",
    "command.py": "help says whose text and code a protocol of DCI is",
    "scores/registry.py": "the paper that introduces a metric, next to its entry",
    "scores/infomec.py": "by which choices released trainings are scored, by their paper",
    "lab/plan/check_gpu.py": "one model of each paper is timed",
    "train/asymmetry_in_minutes.py": "the small task of a paper, which its first chapter trains",
    "train/factorqvae_in_minutes.py": "the small task of a paper, which its first chapter trains",
    "train/qlae_in_minutes.py": "the small task of a paper, which its first chapter trains",
    "train/tripod_in_minutes.py": "the small task of a paper, which its first chapter trains",
    "layers.py": "the layers and losses of all papers by one import",
    "lab/study/design.py": "which papers' models the study trains, in which order, is its design",
    "lab/verify.py": "which model of the study is trained again",
}
MODULES = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.relative_to(PACKAGE).parts[0] not in PAPERS and path.name != "_modidx.py"
    and (path.name != "proofs.py" or path.parent.name == "core")
]  # fmt: skip


def docstrings(tree: ast.Module) -> set[ast.expr]:
    "A string that is a statement, which is what docstrings are."
    statements = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    return {value for value in statements if isinstance(value, ast.Constant)}


def named_in(source: str) -> list[str]:
    "What in a module names a paper: strings, and the folders of imports."
    tree, found = ast.parse(source), []
    said = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in said:
            found += NAMED.findall(node.value)
        elif isinstance(node, ast.ImportFrom):
            found += [part for part in (node.module or "").split(".") if part in PAPERS]
            found += [name.name for name in node.names if name.name in PAPERS]
        elif isinstance(node, ast.Import):
            found += [part for name in node.names for part in name.name.split(".") if part in PAPERS]
    return found


def test_no_paper_is_named_outside_its_folder():
    found = {str(path.relative_to(PACKAGE)): named_in(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {path: names for path, names in found.items() if names and path not in ALLOWED} == {}
    assert [path for path in ALLOWED if not found[path]] == [], "name none, and need not be allowed to"


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_what_a_paper_reports_is_in_its_folder(paper):
    for notebook in (paper.layout, *(measurement.notebook for measurement in paper.measurements)):
        assert notebook.startswith(f"lab/notebooks/{paper.key}_") and (PACKAGE.parent / "nbs" / notebook).is_file()
    assert {table.paper for table in paper.every_table()} == {paper.key}
    settings = import_module(f"disentangle_repro.{paper.key}.settings").SETTINGS
    if paper.key == "qlae":
        settings = settings | {name: varied_setting(name) for name in NEGATIVE_RESULTS}
    assert {name: row.setting for name, row in paper.models.items() if row.setting} == settings
