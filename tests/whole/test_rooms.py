"Reading goes downwards: a module imports only from its own room and from rooms above it."

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "disentangle_repro"
PAPERS = ("qlae", "tripod", "factorqvae", "asymmetry", "psa")
ROOMS = ("core", "data", "nets", "scores", "baselines", *PAPERS, "train", "metrics", "torchmetrics", "models",
         "saved_models", "runs", "plan", "study", "tables", "report", "command")  # fmt: skip
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem in ROOMS)


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    found = set()
    package = path.relative_to(PACKAGE).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            module = tuple((node.module or "").split("."))
            if node.level:
                parts = (*package[: len(package) - node.level + 1], *module)
            elif module[0] == "disentangle_repro":
                parts = module[1:]
            else:
                continue
            found.add(parts[0] if parts and parts[0] else node.names[0].name)
    return found


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


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_says_in_a_whole_sentence_what_it_is_for(path):
    said = ast.get_docstring(ast.parse(path.read_text()))
    assert path.stem == "__init__" or (said and said.endswith((".", "?"))), f"cut off: {said!r}"
