"Reading goes downwards: a module imports only from its own folder and from folders above it."

import ast
import re
from pathlib import Path

from import_graph import FOLDERS, PAPERS, arrows, block, figure, folder, imported_folders

PACKAGE = Path(__file__).parents[2] / "disentangle_repro"
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE or path.stem in FOLDERS]
MODULES.remove(PACKAGE / "lab" / "__init__.py")


def downward(path):
    "Folders below its own that a module imports from."
    here = FOLDERS.index(folder(path))
    return [other for other in imported_folders(path) if FOLDERS.index(other) > here]


def test_imports_point_upwards():
    found = {str(path.relative_to(PACKAGE)): downward(path) for path in MODULES}
    assert len(found) > 150 and {path: below for path, below in found.items() if below} == {}


def test_papers_are_siblings():
    "Naive Tripod takes its quantiser from qlae's folder; else no paper's module but proofs imports another paper's."
    between = {(folder(path), other) for path in MODULES if path.stem != "proofs" for other in imported_folders(path)}
    crossing = {(paper, other) for paper, other in between if {paper, other} <= set(PAPERS) and paper != other}
    assert crossing == {("tripod", "qlae")}


def test_the_library_imports_nothing_of_the_lab():
    "Nor as text, which `import_module` would take; only the command passes on to it."
    library = [path for path in PACKAGE.rglob("*.py") if "lab" not in path.relative_to(PACKAGE).parts]
    naming = {path.stem for path in library if re.search(r"\.lab\b", path.read_text())} - {"_modidx"}
    assert len(library) > 100 and naming == {"command"}


def test_the_figure_is_drawn_from_the_imports():
    known = arrows()
    for line in block().splitlines()[2:-1]:
        below, above = line.replace("-->", " ").split()
        assert below in known[above], f"{above} does not import {below}"
    assert block() == figure(), "python tests/helpers/import_graph.py draws it anew"


def test_modules_say_in_a_whole_sentence_what_they_are_for():
    modules = [path for path in MODULES if path.stem != "__init__"]
    said = {str(path.relative_to(PACKAGE)): ast.get_docstring(ast.parse(path.read_text())) for path in modules}
    assert {path: text for path, text in said.items() if not (text and text.endswith((".", "?")))} == {}
