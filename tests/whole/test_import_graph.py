"What the contracts in .importlinter cannot say: of imports as text, of the figure, of docstrings."

import ast
import re
from pathlib import Path

from import_graph import block, figure

PACKAGE = Path(__file__).parents[2] / "disentangle_repro"
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.stem not in ("__init__", "_modidx")]


def test_only_the_command_names_the_lab_as_text():
    "`import_module` takes it."
    library = [path for path in MODULES if "lab" not in path.relative_to(PACKAGE).parts]
    naming = {path.stem for path in library if re.search(r"\.lab\b", path.read_text())}
    assert len(library) > 100 and naming == {"command"}


def test_the_figure_is_drawn_from_the_imports():
    assert block() == figure(), "python tests/helpers/import_graph.py draws it"


def test_modules_say_in_a_whole_sentence_what_they_are_for():
    said = {str(path.relative_to(PACKAGE)): ast.get_docstring(ast.parse(path.read_text())) for path in MODULES}
    assert {path: text for path, text in said.items() if not (text and text.endswith((".", "?")))} == {}
