"The folders of the package, in the order of the contracts in .importlinter, and their figure in CONTRIBUTING.md."

from configparser import ConfigParser
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"


def folders() -> list[str]:
    "The lowest first; those of the lab take the lab's place."
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    listed = (contracts[f"importlinter:contract:{name}"]["layers"] for name in ("package", "lab"))
    library, lab = (names.strip().splitlines()[::-1] for names in listed)
    layers = [*library[:-1], *(f"lab.{name}" for name in lab)]
    return [name for layer in layers for name in layer.split(" | ")]


def figure() -> str:
    "The folders as a diagram; an arrow that others together represent is left out."
    names = {f"disentangle_repro.{name}": name.replace(".", "/") for name in folders()}
    graph = grimp.build_graph("disentangle_repro", cache_dir=None)
    for module in graph.find_modules_directly_imported_by("disentangle_repro"):  # names for users
        graph.remove_import(importer="disentangle_repro", imported=module)
    for module in names:
        graph.squash_module(module)
    lines = ["```mermaid", "flowchart TD"]
    for module in names:
        direct = graph.find_modules_directly_imported_by(module) - {module}
        indirect = {far for other in direct for far in graph.find_upstream_modules(other)}
        lines += [f"    {names[other]} --> {names[module]}" for other in names if other in direct - indirect]
    return "\n".join([*lines, "```"])


def block() -> str:
    "The diagram in CONTRIBUTING.md."
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("```mermaid")
    return text[start : text.index("```", start + 3) + 3]


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text(encoding="utf-8").replace(block(), figure()), encoding="utf-8")
