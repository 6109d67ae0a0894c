"A small store with runs of all five papers whose scores are made up, and one run of every kind of misfortune."

import base64
import random
from pathlib import Path

import nbformat
import numpy as np
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from disentangle_repro.data.load import GRIDS
from disentangle_repro.experiment.run_spec import RunSpec
from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.plan.specs import once, run_spec, wanted
from disentangle_repro.lab.report import make_report
from disentangle_repro.papers import PAPERS, measurement_of
from disentangle_repro.train.store import Store

EVERY = 10  # of the trainings every so manieth is in the store, the others are waiting
AGREEMENTS = 2  # comparisons of trainings that are there
MODELS_OF = {"qlae": ("ae", "qlae"), "factorqvae": ("qlae",), "tripod": ("qlae",)}  # which are there on shapes3d anyway
ENVIRONMENT = {"commit": "0123456789abcdef+changes", "device": "CPU, threads: 1", "machine": "x86_64",
               "python": "3.11.0", "torch": "2.13.0"}  # fmt: skip


def sheet(spec: RunSpec, store: Store) -> None:
    "A sheet of four latents of two images, and the latents."
    shades = np.random.default_rng(0).integers(256, size=(2 * 10, 4, 3)).astype(np.uint8)
    Image.fromarray(shades.repeat(8, 0).repeat(8, 1)).save(store.folder(spec) / "moves.jpg")
    np.savez(store.folder(spec) / "latents.npz", latents=np.arange(40).reshape(10, 4) % 7, rows=np.arange(10))


def notebook(sheet: Path) -> nbformat.NotebookNode:
    "An executed notebook: prose with a local link, a long line, and an image."
    image = {"image/jpeg": base64.b64encode(sheet.read_bytes()).decode()}
    outputs = [new_output("stream", name="stdout", text="x" * 200), new_output("display_data", image)]
    prose = new_markdown_cell("# One run\n\nIt links [a chapter](../train/02_loop.ipynb), and $z_j$.")
    return new_notebook(cells=[prose, new_code_cell("print(1)", outputs=outputs)])


def record(spec: RunSpec, rng: random.Random) -> dict:
    "Scores out of the air, and what stands beside them."
    metrics = dict.fromkeys(metric for table in PAPERS[spec.paper].tables for metric in table.metrics)
    if spec.model == "iteration_times":
        metrics = ("beta_tcvae", "qlae", "qlae_klm", "tripod")
    elif measurement_of(spec):
        metrics = ("smcc", "r2", "aggregate_ratio")
    scores = {metric: round(rng.random(), 4) for metric in metrics} | {"psnr": 20.0, "mse": 0.01}
    made = {"environment": ENVIRONMENT, "scores": scores, "seconds": round(60 * rng.random(), 1)}
    if measurement_of(spec):
        pairs = {"a": [0, 0, 1], "b": [1, 2, 2], "smcc": 3 * [scores.get("smcc", 0)], "r2": 3 * [scores.get("r2", 0)]}
        return made | {"pairs": pairs, "alternating": pairs, "rounds": {}, "operations": dict.fromkeys(metrics, 10**9)}
    made |= {"probes": [{"updates": 40, "loss": 1.0, "psnr": 20.0}], "scored_at": 40}
    if spec.dataset in GRIDS:
        sources, latents = len(GRIDS[spec.dataset].sources.names), 4
        shares = [[round(rng.random(), 3) for _ in range(latents)] for _ in range(sources)]
        made |= {"nmi": shares, "importance": [*zip(*shares, strict=True)], "active": [True] * latents}
    return made


def in_the_store(specs: list[RunSpec]) -> list[RunSpec]:
    "Every tenth training of each paper, and those that all three papers with attributes have on shapes3d."
    some = [spec for paper in PAPERS for spec in [s for s in specs if s.paper == paper][::EVERY]]
    return once([*some, *(s for s in specs if s.dataset == "shapes3d" and s.model in MODELS_OF.get(s.paper, ()))])


def small_store(folder) -> Store:
    "The store, below `folder`."
    rng, store = random.Random(0), Store(folder / "runs", folder / "results")
    asked = wanted(tuple(PAPERS), Request(SCALES["smoke"]), store)
    runs = in_the_store(asked.trainings)
    larger = [Request(SCALES["study"]), Request(SCALES["study"], protocol="code"), Request(SCALES["short"], "official")]
    runs += [run_spec("qlae", model, "shapes3d", request) for request in larger for model in ("ae", "qlae")]
    with_sheets = runs[-2 * len(larger) :]
    for spec in with_sheets:
        sheet(spec, store)
    failing, damaged = runs[1:3]
    runs += [spec for spec in asked.measurements if spec.model != "agreement"]
    runs += [spec for spec in asked.measurements if spec.model == "agreement"][:AGREEMENTS]
    for spec in (spec for spec in runs if spec.id != failing.id):
        store.finish(spec, record(spec, rng))
        (store.folder(spec) / "run.ipynb").write_text("{}")
    for spec in with_sheets:
        nbformat.write(notebook(store.folder(spec) / "moves.jpg"), store.folder(spec) / "run.ipynb")
    store.fail(failing, "loss is nan at update 7: reconstruction nan, <kl> 0.1")
    (store.folder(failing) / "run.ipynb").write_text("{}")
    file = store.folder(damaged) / "run.json"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return store


def small_report(folder) -> Path:
    "The report of the small store, below `folder`."
    return make_report(small_store(folder / "store"), folder / "report").parent
