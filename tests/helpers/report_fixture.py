"A small store with runs of all five papers whose scores are made up, and one run of every kind of misfortune."

import base64
import io
import random
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from disentangle_repro.data.load import GRIDS
from disentangle_repro.experiment.run_spec import RunSpec
from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.plan.specs import is_measurement, once, run_spec, wanted
from disentangle_repro.lab.report import site
from disentangle_repro.papers import PAPERS
from disentangle_repro.train.store import Store

EVERY = 10  # of the trainings every so manieth is in the store, the others are waiting
AGREEMENTS = 2  # comparisons of trainings that are there
MODELS_OF = {"qlae": ("ae", "qlae"), "factorqvae": ("qlae",), "tripod": ("qlae",)}  # which are there on shapes3d anyway
ENVIRONMENT = {"commit": "0123456789abcdef+changes", "device": "CPU, threads: 1", "machine": "x86_64",
               "python": "3.11.0", "torch": "2.13.0"}  # fmt: skip


def random_image(rng: random.Random, width: int = 96, height: int = 32) -> bytes:
    "A PNG of one colour."
    stream = io.BytesIO()
    Image.new("RGB", (width, height), tuple(rng.randrange(256) for _ in range(3))).save(stream, "PNG")
    return stream.getvalue()


def drawn(rng: random.Random, source: str) -> nbformat.NotebookNode:
    "A cell that shows a image."
    data = {"image/png": base64.b64encode(random_image(rng)).decode(), "text/plain": "<Figure>"}
    return new_code_cell(source, outputs=[new_output("display_data", data)])


def notebook(spec: RunSpec, rng: random.Random, error: str = "") -> str:
    "An executed notebook as runs leave it: data, curve, images, a table; with `error` it ends early."
    cells = [
        new_markdown_cell("# One run\n\n> A made-up run.\n\nIt links [a chapter](../train/02_loop.ipynb), and $z_j$."),
        new_code_cell(f"spec = {spec.id!r}", metadata={"tags": ["parameters"]}),
        new_markdown_cell("## Data"),
        drawn(rng, "plt.imshow(mosaic(data.images[:20].unflatten(0, (2, 10))))"),
    ]
    if error:
        trace = ["\x1b[31mTraceback\x1b[0m", error]
        failed = new_output("error", ename="FloatingPointError", evalue=error, traceback=trace)
        cells.append(new_code_cell("curve = fit(training, updates)", outputs=[failed]))
        return nbformat.writes(new_notebook(cells=cells))
    table = {"text/html": pd.DataFrame({"InfoM": [0.5]}, ["qlae"]).to_html(), "text/plain": "InfoM 0.5"}
    printed = "x" * 200 + "\n<b>not bold</b>\n"
    cells += [
        new_markdown_cell("## Training"),
        drawn(rng, "plot_curve(curve, sorted(terms), left)"),
        drawn(rng, "shown = torch.stack([data.images[rows], evaluation.reconstructions[:10]])"),
        drawn(rng, "plot_nmi(evaluation.infomec.nmi, data.names, evaluation.infomec.active, axis)"),
        drawn(rng, 'figure.savefig(store.folder(spec) / "interventions.png", dpi=100)'),
        new_code_cell("scores", outputs=[new_output("execute_result", table, execution_count=1)]),
        new_code_cell("print(1)", outputs=[new_output("stream", name="stdout", text=printed)]),
    ]
    return nbformat.writes(new_notebook(cells=cells))


def sheet(spec: RunSpec, store: Store) -> None:
    "A sheet of four latents of two images, and the latents."
    shades = np.random.default_rng(0).integers(256, size=(2 * 10, 4, 3)).astype(np.uint8)
    Image.fromarray(shades.repeat(8, 0).repeat(8, 1)).save(store.folder(spec) / "moves.jpg")
    np.savez(store.folder(spec) / "latents.npz", latents=np.arange(40).reshape(10, 4) % 7, rows=np.arange(10))


def record(spec: RunSpec, rng: random.Random) -> dict:
    "Scores out of the air, and what stands beside them."
    metrics = dict.fromkeys(metric for table in PAPERS[spec.paper].tables for metric in table.metrics)
    if spec.model == "iteration_times":
        metrics = ("beta_tcvae", "qlae", "qlae_klm", "tripod")
    elif is_measurement(spec):
        metrics = ("smcc", "r2", "aggregate_ratio")
    scores = {metric: round(rng.random(), 4) for metric in metrics} | {"psnr": 20.0, "mse": 0.01}
    made = {"environment": ENVIRONMENT, "scores": scores, "seconds": round(60 * rng.random(), 1)}
    if is_measurement(spec):
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
    for spec in runs[-2 * len(larger) :]:
        sheet(spec, store)
    failing, damaged, cut = runs[1:4]
    runs += [spec for spec in asked.measurements if spec.model != "agreement"]
    runs += [spec for spec in asked.measurements if spec.model == "agreement"][:AGREEMENTS]
    for spec in (spec for spec in runs if spec.id != failing.id):
        store.finish(spec, record(spec, rng))
        (store.folder(spec) / "run.ipynb").write_text(notebook(spec, rng), encoding="utf-8")
        (store.folder(spec) / "interventions.png").write_bytes(random_image(rng))
    error = "loss is nan at update 7: reconstruction nan, <kl> 0.1"
    store.fail(failing, error)
    (store.folder(failing) / "run.ipynb").write_text(notebook(failing, rng, error), encoding="utf-8")
    for spec, name in ((damaged, "run.json"), (cut, "run.ipynb")):
        file = store.folder(spec) / name
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return store


def small_report(folder) -> Path:
    "The report of the small store, below `folder`."
    return site.make_report(small_store(folder / "store"), folder / "report").parent
