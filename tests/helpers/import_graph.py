"The folders of the package in order, and their figure in CONTRIBUTING.md: python tests/helpers/import_graph.py"

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE, PAGE = ROOT / "disentangle_repro", ROOT / "CONTRIBUTING.md"
PAPERS = ("qlae", "tripod", "factorqvae", "asymmetry", "psa")
LIBRARY = ("core", "experiment", "data", "nets", "scores", "baselines", *PAPERS, "metrics",
           "representations", "torchmetrics", "models",
           "papers", "saved_models", "common", "train", "lightning", "command")  # fmt: skip
LAB = ("lab/runs", "lab/plan", "lab/tables", "lab/report", "lab/study", "lab/command")
FOLDERS = (*LIBRARY, *LAB)


def folder(path: Path) -> str:
    return folder_of(path.relative_to(PACKAGE).with_suffix("").parts)


def folder_of(module: tuple[str, ...]) -> str:
    return "/".join(module[: 1 + (module[0] == "lab")])


def imported_folders(path: Path) -> set[str]:
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
            parts = tuple(part for part in parts if part)
            found |= {folder_of(parts)} if parts else {name.name for name in node.names}
    return found - {"__version__"}


def arrows() -> dict[str, set[str]]:
    "For each folder that is imported from others: these, from the imports of all modules."
    found = {name: set() for name in FOLDERS}
    for path in PACKAGE.rglob("*.py"):
        if folder(path) in found:
            found[folder(path)] |= imported_folders(path) - {folder(path)}
    return found


def reach(name: str, of: dict[str, set[str]]) -> set[str]:
    "All folders that a folder imports from, directly or by way of others."
    return of[name] | {far for other in of[name] for far in reach(other, of)}


def figure() -> str:
    "The folders as a diagram; an arrow that others together stand for is left out."
    of = arrows()
    lines = ["```mermaid", "flowchart TD"]
    for name in FOLDERS:
        roundabout = {far for other in of[name] for far in reach(other, of)}
        lines += [f"    {other} --> {name}" for other in FOLDERS if other in of[name] - roundabout]
    return "\n".join([*lines, "```"])


def block() -> str:
    "The diagram that stands in CONTRIBUTING.md."
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("```mermaid")
    return text[start : text.index("```", start + 3) + 3]


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text(encoding="utf-8").replace(block(), figure()), encoding="utf-8")
