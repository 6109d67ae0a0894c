"""Processor seconds of a run and of a notebook of tables, with kernels that are started and that are forked:
python benchmarks/bench_kernels.py"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from statistics import median

import nbformat
import psutil

from disentangle_repro.core import kernels
from disentangle_repro.core.files import project_root
from disentangle_repro.core.scale import SCALES
from disentangle_repro.plan.request import Request
from disentangle_repro.plan.specs import run_spec
from disentangle_repro.runs.runner import execute
from disentangle_repro.tables.make import IMPORTED

NBS, RUNS, TABLES = project_root() / "nbs", 5, 3
LAST = "import json, os\njson.dump(sum(os.times()[:2]), open(cpu_file, 'w'))"  # user and system, of the kernel


@contextmanager
def timed(source: str) -> Iterator[Path]:
    "A copy of a notebook, beside it, that writes its kernel's processor seconds into the file of one more parameter."
    book = nbformat.read(NBS / source, 4)
    (given,) = (cell for cell in book.cells if "parameters" in cell.metadata.get("tags", ()))
    given.source += "\ncpu_file = None"
    book.cells.append(nbformat.v4.new_code_cell(LAST))
    path = (NBS / source).with_name("_timed_" + Path(source).name)
    nbformat.write(book, path)
    try:
        yield path
    finally:
        path.unlink()


def seconds(notebook: Path, folder: Path, **parameters) -> float:
    "Of the kernel that executes a notebook."
    execute(str(notebook), folder / "executed.ipynb", cpu_file=str(folder / "cpu.json"), **parameters)
    return json.loads((folder / "cpu.json").read_text())


def main():
    spec = run_spec("qlae", "qlae", "shapes3d", Request(SCALES["smoke"]), seed=1)
    for name, inside in (("started", nullcontext()), ("forked", kernels.forked_kernels(IMPORTED))):
        books = timed("runs/run.ipynb"), timed("qlae/tables.ipynb")
        with tempfile.TemporaryDirectory() as folder, inside, books[0] as run, books[1] as tables:
            place, runs = Path(folder), []
            for i in range(RUNS):
                folders = {"runs": str(place / f"runs_{i}"), "results": str(place / "results")}
                runs.append(seconds(run, place, spec=asdict(spec), folders=folders))
            laid_out = [seconds(tables, place, paper="qlae", scale="cpu") for _ in range(TABLES)]
            line = f"{name}: a run {median(runs):.1f} s, a notebook of tables {median(laid_out):.1f} s"
            servers = [psutil.Process(server.process.pid).cpu_times() for server in kernels._servers.values()]
            print(line + "".join(f", the server {of.user + of.system:.1f} s" for of in servers))


if __name__ == "__main__":
    main()
