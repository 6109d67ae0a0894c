"A checkout with nothing but a notebook of runs."

from pathlib import Path

from nbformat import write
from nbformat.v4 import new_code_cell, new_notebook


def checkout_with(code: str, folder: Path) -> Path:
    "A checkout whose runs consist of that code."
    given = new_code_cell("spec = None\nfolders = None\ndeadline = None", metadata={"tags": ["parameters"]})
    (folder / "nbs" / "lab" / "notebooks").mkdir(parents=True)
    write(new_notebook(cells=[given, new_code_cell(code)]), folder / "nbs" / "lab" / "notebooks" / "run.ipynb")
    (folder / "settings.ini").write_text("lib_name = disentangle_repro\n")
    return folder
