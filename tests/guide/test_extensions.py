"Extensions: a file of somebody's own, known to every process that a table needs."

import sys
from dataclasses import replace
from pathlib import Path

import joblib
import pandas as pd
import pytest
import torch

from disentangle_repro import models, papers
from disentangle_repro.baselines.autoencoder import plain_autoencoder
from disentangle_repro.core import extensions
from disentangle_repro.core.engine import joblib_on
from disentangle_repro.core.files import data_folder
from disentangle_repro.core.hyperparameters import merged
from disentangle_repro.core.paper import Table
from disentangle_repro.core.scale import SCALES
from disentangle_repro.data import add_dataset, hdf5, load, load_dataset, official
from disentangle_repro.data.shapes3d import SHAPES3D
from disentangle_repro.data.sources import Sources
from disentangle_repro.data.sprites import SPRITES
from disentangle_repro.models import add_model, create_model
from disentangle_repro.papers import PAPERS, add_paper, add_row, add_table
from disentangle_repro.plan.request import Request
from disentangle_repro.plan.specs import run_spec, table_specs, tuning_specs
from disentangle_repro.tables import make
from disentangle_repro.tables.claims import measured_numbers
from disentangle_repro.train import Store

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def registries():
    "What an extension may change, put back afterwards."
    of = [models.MODELS, models.SLOT_MODELS, load.SCENES, load.GRIDS, official.PUBLISHED, papers.MODEL_NAMES,
          papers.METRIC_NAMES, papers.DECIMALS, PAPERS, extensions.LOADED]  # fmt: skip
    before, lists = [dict(known) for known in of], (load.NAMES[:], load.RENDERED[:])
    yield
    for known, entries in zip(of, before, strict=True):
        known.clear()
        known.update(entries)
    load.NAMES[:], load.RENDERED[:] = lists


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    "What `make tables` reads, with a store of its own and the working directory in it."
    monkeypatch.chdir(PROJECT)
    monkeypatch.setenv("DISENTANGLE_DATA", str(data_folder()))
    extensions.rehearse(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no file"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("from disentangle_repro.models import add_model\nadd_model('qlae', None)", "name is 'qlae' but that name is"),
    ],
)  # fmt: skip
def test_an_extension_that_cannot_be_loaded_is_named(registries, checkout, monkeypatch, capsys, text, said):
    if text is not None:
        Path("mine.py").write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv(extensions.VARIABLE, "mine.py")
    with pytest.raises(SystemExit) as stopped:
        make.main(["--papers", "qlae", "--scale", "smoke"])
    printed = capsys.readouterr().err
    assert stopped.value.code == 2 and "DISENTANGLE_EXTENSIONS names 'mine.py'" in printed and said in printed
    assert not Path("paper_tables/runs").exists()


def test_several_extensions_are_imported_once_each(registries, tmp_path, monkeypatch):
    for name in ("first_of_mine", "second_of_mine"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'log')!r}, 'a').write('{name} ')")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv(extensions.VARIABLE, f" {tmp_path}/first_of_mine.py , {tmp_path}/second_of_mine.py,")
    extensions.load_extensions(), extensions.load_extensions()
    assert (tmp_path / "log").read_text().split() == ["first_of_mine", "second_of_mine"]


def test_a_row_is_trained_and_tuned_like_another(registries):
    add_model("mine", plain_autoencoder)
    add_row("tripod", "mine", like="beta_tcvae", extra=2.0)
    in_full = Request(SCALES["paper"])
    other, mine = (run_spec("tripod", name, "isaac3d", in_full).hyperparameters for name in ("beta_tcvae", "mine"))
    assert mine == merged(other, {"model": {"extra": 2.0}})
    (table,) = PAPERS["tripod"].tables
    assert table.models[-1] == "mine" and papers.MODEL_NAMES["mine"] == "mine"
    grids = tuning_specs(table, in_full)
    assert list(grids["mine", "mpi3d"]) == list(grids["beta_tcvae", "mpi3d"])
    own = [spec for spec in table_specs(table, in_full, Store(Path("none"), Path("none"))) if spec.model == "mine"]
    assert len(own) == 4 * 3


def test_claims_are_not_judged_on_rows_that_were_added(registries):
    add_model("mine", plain_autoencoder)
    add_row("factorqvae", "mine", like="ae")
    cell = {"paper": "factorqvae", "dataset": "shapes3d", "metric": "d", "ours": 1.0, "ours_ci95": float("nan")}
    cells = pd.DataFrame([{**cell, "model": model} for model in ("mine", "factorqvae")])
    assert list(measured_numbers(cells).model) == ["factorqvae"]


def test_a_data_set_is_drawn_and_has_a_table_of_its_own(registries, tmp_path, monkeypatch):
    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path))
    few = replace(SHAPES3D, name="few", sources=Sources(SHAPES3D.sources.names, (2, 2, 2, 2, 2, 3)))
    add_dataset(few)
    data = load_dataset("few")
    assert data.images.shape == (96, 64, 64, 3) and create_model("ae", dataset="few", width=0.1).encode(
        data.images[:2]
    ).shape == (2, 12)
    before = PAPERS["qlae"].tables[0]
    add_table(replace(before, number="few", datasets=("few",)), like="falcor3d")
    assert PAPERS["qlae"].tables[0] == before, "a paper's mean over its data sets has changed"
    spec = run_spec("qlae", "qlae", "few", Request(SCALES["smoke"]))
    assert spec.hyperparameters["data"]["images"] == 96, "a run asks for more images than there are"
    lent = run_spec("qlae", "qlae", "falcor3d", Request(SCALES["smoke"])).hyperparameters
    assert spec.hyperparameters == merged(lent, {"data": {"images": 96}})


@pytest.mark.parametrize("engine", [pytest.param("local", marks=pytest.mark.whole), "local:1"])
def test_a_generator_in_a_file_is_drawn_by_processes_that_were_there_before(registries, tmp_path, monkeypatch, engine):
    (tmp_path / "my_scene.py").write_text(
        "from dataclasses import replace\nfrom disentangle_repro.data.shapes3d import SHAPES3D\n"
        "from disentangle_repro.data import add_dataset\nimport torch\n"
        "def draw(values, image_size, samples, repeats):\n"
        "    return torch.zeros(len(values), image_size, image_size, 3) + values[:, 4, None, None, None] / 3\n"
        "add_dataset(replace(SHAPES3D, name='grey', draw=draw, image_size=8))\n"
    )
    monkeypatch.delitem(sys.modules, "my_scene", raising=False)
    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path))
    monkeypatch.setattr(hdf5, "WORTH_HELPERS", 0)
    with joblib_on(engine):
        assert joblib.Parallel(2)(joblib.delayed(abs)(n) for n in (-1, -2)) == [1, 2]  # now there are helpers
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.setenv(extensions.VARIABLE, f"{tmp_path}/my_scene.py")
        extensions.load_extensions()
        with hdf5.opened(load.rendered_file(load.SCENES["grey"], 9_000, workers=2)) as file:
            assert len(file["images"]) == 9_000 and set(file["images"][:].ravel()) == {0, 85, 170, 255}


def test_slots_and_scenes_of_ones_own(registries):
    add_dataset(replace(SPRITES, name="my_sprites", splits={"train": 30, "validation": 5, "test": 5}))
    add_table(Table("psa", "mine", "On mine", ("sa",), ("my_sprites",), ("fg_ari",), ()), like="sprites")
    how = run_spec("psa", "sa", "my_sprites", Request(SCALES["smoke"])).hyperparameters
    assert (how["data"]["images"], how["model"]["n_slots"]) == (40, 5)
    add_model("my_slots", models.SLOT_MODELS["sa"], slots=True)
    model = create_model("my_slots", dataset="my_sprites", width=0.25, dim=16)
    assert model.encode(torch.zeros(2, 64, 64, 3, dtype=torch.uint8)).shape == (2, 5, 16)
    with pytest.raises(ValueError, match="shapes3d has one object: name must be one of 'ae'"):
        create_model("my_slots", dataset="shapes3d")


@pytest.mark.parametrize(
    ("add", "said"),
    [
        (lambda: add_model("QL AE", plain_autoencoder), "must consist of letters"),
        (lambda: add_dataset(), "need one name"),
        (lambda: add_dataset(SHAPES3D, official.PUBLISHED["mpi3d"]), "need one name"),
        (lambda: add_dataset(SHAPES3D), "name is 'shapes3d' but that name is taken"),
        (lambda: add_row("qlae", "factorvae", like="tripod"), "like is 'tripod' but must be one of 'ae'"),
        (lambda: add_row("qlea", "factorvae", like="ae"), "paper is 'qlea' but must be one of"),
        (lambda: add_table(replace(PAPERS["qlae"].tables[0], number="9", models=("psa",))), "models is 'psa'"),
        (lambda: add_table(replace(PAPERS["psa"].tables[0], number="9", datasets=("discs",))), "datasets is 'discs'"),
        (lambda: add_paper(PAPERS["qlae"]), "key is 'qlae' but that name is taken"),
        (lambda: add_paper(replace(PAPERS["qlae"], key="new")), "paper is 'qlae' but must be one of 'new'"),
    ],
)  # fmt: skip
def test_what_will_not_do_is_refused_and_leaves_nothing(registries, add, said):
    before = dict(PAPERS), dict(papers.MODEL_NAMES), list(load.NAMES)
    with pytest.raises(ValueError, match=said):
        add()
    assert before == (dict(PAPERS), dict(papers.MODEL_NAMES), list(load.NAMES))
