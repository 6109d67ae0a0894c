"Reading goes downwards: a module imports only from its own room and from rooms above it."

import ast
from pathlib import Path

import pytest
from rooms import ROOMS, block, figure, imported_rooms, room

PACKAGE = Path(__file__).parents[2] / "disentangle_repro"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem in ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_upwards(path):
    here = ROOMS.index(room(path))
    for other in imported_rooms(path):
        assert ROOMS.index(other) <= here, f"{path.name} in {room(path)} imports from {other}, which lies below"


def test_a_downward_import_would_be_found(tmp_path, monkeypatch):
    wrong = PACKAGE / "core" / "wrong.py"
    monkeypatch.setattr(Path, "read_text", lambda self: "from ..train.loop import fit\n")
    assert imported_rooms(wrong) == {"train"}
    with pytest.raises(AssertionError, match="lies below"):
        test_imports_point_upwards(wrong)


def test_the_figure_is_drawn_from_the_imports():
    arrows = {(room(path), other) for path in MODULES for other in imported_rooms(path)}
    known = {frm: {other for one, other in arrows if one == frm and other != frm} for frm in ROOMS}
    for line in block().splitlines()[2:-1]:
        below, above = line.replace("-->", " ").split()
        assert below in known[above], f"{above} does not import {below}"
    assert block() == figure(), "python tests/helpers/rooms.py draws it anew"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_says_in_a_whole_sentence_what_it_is_for(path):
    said = ast.get_docstring(ast.parse(path.read_text()))
    assert path.stem == "__init__" or (said and said.endswith((".", "?"))), f"cut off: {said!r}"
