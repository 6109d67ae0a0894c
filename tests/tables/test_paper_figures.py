"The figures of the five papers, drawn from what runs have kept."

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from disentangle_repro.baselines.autoencoder import decode_all, encode_all
from disentangle_repro.data.load import GRIDS, load_dataset
from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.plan.specs import run_spec
from disentangle_repro.lab.records import runs
from disentangle_repro.lab.runs.evaluate import MOVE_SHEETS, move_sheet
from disentangle_repro.lab.tables.figures import decoded_again, drawn_figures
from disentangle_repro.models import create_model
from disentangle_repro.train.store import store_in

REQUEST, LATENTS, SIZE = Request(SCALES["smoke"]), 4, 8
SHOWS_RUNS = {
    "qlae": "3, 4, 12, 13, 14, 15",
    "tripod": "5, 7, 8, 9, 10",
    "factorqvae": "2, 3, 4, 5, 6, 7, 8, 9",
    "asymmetry": "3, 6, 5, 7",
    "psa": "5, 8, 10, 11, 12",
}


def finished(store, spec, infom=0.5):
    "A finished run with everything that a figure may show, all images of the shade of its seed."
    rng, sources = np.random.default_rng(0), len(GRIDS[spec.dataset].sources.names) if spec.dataset in GRIDS else 3
    names = ("infom", "infoc", "d", "c", "contrast", "mse", "smcc", "sis")
    shares = rng.random((sources, LATENTS)).round(2)
    record = {"scores": dict.fromkeys(names, infom), "nmi": shares.tolist(), "importance": shares.T.tolist()}
    record |= {"active": [True] * (LATENTS - 1) + [False], "values": [0.0, 1.0], "counts": [[1, 2]] * LATENTS}
    record |= {"interaction": [[1, 2.0 + spec.seed], [2, 1.0 + spec.seed]]}
    for file in (*MOVE_SHEETS, "swaps.png", "jacobians.png", "attention.png", "weights.png", "compositions.png"):
        Image.new("RGB", (LATENTS * SIZE, 3 * 10 * SIZE), (spec.seed,) * 3).save(store.folder(spec) / file)
    store.finish(spec, record)


@pytest.mark.parametrize("paper", SHOWS_RUNS)
def test_all_are_drawn_where_all_runs_are_there_and_none_where_none_is(tmp_path, paper):
    store = store_in({"runs": tmp_path / "runs", "results": tmp_path / "results"})
    empty = [drawn for drawn in drawn_figures(paper, REQUEST, store) if drawn.figure.shows]
    assert ", ".join(drawn.figure.number for drawn in empty) == SHOWS_RUNS[paper]
    assert {drawn.state for drawn in empty} == {"needs runs"} and not any([*drawn.draw()] for drawn in empty)
    assert all(f"make tables PAPERS={paper}" in drawn.missing for drawn in empty)
    known = runs(store, REQUEST)
    for spec in known.spec[(known.paper == paper) & known.trained]:
        finished(store, spec)
    full = [drawn for drawn in drawn_figures(paper, REQUEST, store) if drawn.figure.shows]
    assert {drawn.state for drawn in full} == {"drawn"}
    for drawn in full:
        cells = len(drawn.figure.models) * len(drawn.figure.datasets)
        assert {len(panels) for panels in drawn.panels.values()} == {cells}
    assert len([*full[1].draw()]) == len(full[1].figure.shows)


def test_a_run_that_tables_count_is_shown_before_others_which_are_called_exploratory(tmp_path):
    store = store_in({"runs": tmp_path / "runs", "results": tmp_path / "results"})
    finished(store, run_spec("qlae", "qlae", "isaac3d", replace(REQUEST, updates=7), 1), 0.9)
    finished(store, run_spec("qlae", "bioae", "isaac3d", REQUEST), 0.1)
    finished(store, run_spec("qlae", "ae", "isaac3d", REQUEST), 0.2)
    finished(store, run_spec("qlae", "beta_vae", "isaac3d", replace(REQUEST, updates=7), 1), 0.9)

    def titles():
        (figure,) = (drawn for drawn in drawn_figures("qlae", REQUEST, store) if drawn.figure.number == "4")
        assert figure.state == "drawn in part" and 'MODELS="vqvae beta_tcvae"' in figure.missing
        return [panel.title for panel in figure.panels["moves.jpg"]]

    assert titles() == ["QLAE, isaac3d (exploratory: seed 1, 7 updates)", "AE, isaac3d"], "the highest that counts"
    finished(store, run_spec("qlae", "qlae", "isaac3d", REQUEST), 0.1)
    assert titles()[0] == "QLAE, isaac3d"


@pytest.mark.parametrize("file", MOVE_SHEETS)
def test_a_sheet_that_was_not_kept_is_decoded_again_from_kept_weights(tmp_path, file):
    store = store_in({"runs": tmp_path / "runs", "results": tmp_path / "results"})
    spec = run_spec("qlae", "qlae", "shapes3d", REQUEST)
    part = spec.part("data")
    data = load_dataset("shapes3d", n=part["images"], image_size=part["image_size"])
    model = create_model("qlae", "shapes3d", width=0.125, image_size=part["image_size"], seed=3)
    with torch.no_grad():
        model.latent.codebooks *= torch.linspace(1, 2, len(model.latent.codebooks))[:, None]
    model.save_pretrained(store.folder(spec) / "model")
    latents = torch.rand(20, 12, generator=torch.Generator().manual_seed(0)).half().float()
    rows = torch.arange(20).flip(0)
    np.savez(store.folder(spec) / "latents.npz", latents=latents.numpy().astype(np.float16), rows=rows.numpy())
    finished(store, spec)
    sheet = decoded_again(store.record(spec), file, store)
    assert np.array_equal(sheet, move_sheet(model, data.images[rows[:8]], latents, file))
    first = sheet[: data.image_size, : data.image_size]  # the first latent at the least value of its range
    code = encode_all(model, data.images[rows[:1]])
    code[0, 0] = {"moves.jpg": latents[:, 0].min(), "traversals.jpg": model.latent.codebooks[0].min()}[file]
    assert np.abs(first.astype(int) - decode_all(model, code)[0].numpy()).max() <= 1, "batches round differently"
