"The wheel holds the package and what a package index shows, and works with no more than the base requirements bring."

import json
import os
import re
import shutil
import subprocess
import sys
from email import message_from_string
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from packaging.requirements import Requirement

PROJECT = Path(__file__).parents[2]
PARTS = ("setup.py", "settings.ini", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md")
OPTIONAL = {"disentangle_repro.torchmetrics"}
KEPT = "disentangle_repro/paper_tables/"
NOT_TO_SCORE = {"sympy"}  # there, but slow to import

REFUSE = """
import sys

class Refuse:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {refused!r}:
            raise ModuleNotFoundError(f"{{name}} is not among what the base requirements bring", name=name)

sys.meta_path.insert(0, Refuse)
import disentangle_repro
assert disentangle_repro.__file__.startswith({folder!r}), disentangle_repro.__file__
"""

IMPORT_ALL = """
import importlib, json, pkgutil

failed = {}
for module in pkgutil.walk_packages(disentangle_repro.__path__, "disentangle_repro."):
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        failed[module.name] = str(error)
print(json.dumps(failed))
"""

ENTRY_POINTS = """
from importlib.metadata import distribution

for command in distribution("disentangle_repro").entry_points:
    assert callable(command.load()), command
"""

WITHOUT_EXTRAS = """
import numpy as np

from disentangle_repro.data.load import drawn_on
from disentangle_repro.metrics import plot_nmi

figure = lambda: plot_nmi(np.eye(2), ["a", "b"], np.ones(2, bool))
for call in (drawn_on("tcp://localhost:1").__enter__, figure):
    try:
        call()
    except ImportError as error:
        print(error)
"""

OUTSIDE = """
from disentangle_repro.core.files import data_folder, kept_results
from disentangle_repro.saved_models import list_pretrained, load_pretrained

model = load_pretrained("qlae", "shapes3d")
assert len(list_pretrained(str(kept_results()))) == {n}
print(type(model).__name__, type(load_pretrained("ae", results=str(kept_results()))).__name__, not model.training)
assert str(data_folder()).startswith({away!r}), data_folder()
"""

NEED_A_CHECKOUT = [["tables", "--scale", "smoke"], ["report"], ["verify"], ["proofs"], ["list", "proofs"]]
EACH = """
from disentangle_repro.command import main

sys.stderr = sys.stdout
for arguments in {commands!r}:
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = ended.code
    print(arguments[0], status)
"""

SCORE = """
from disentangle_repro.command import main

main(["score", "latents.npz", "--dci-samples", "200"])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    "Built from the files a source distribution has, without a network."
    source = tmp_path_factory.mktemp("source")
    for part in PARTS:
        shutil.copy(PROJECT / part, source)
    ignored = shutil.ignore_patterns("__pycache__", "*.ipynb")
    shutil.copytree(PROJECT / "disentangle_repro", source / "disentangle_repro", ignore=ignored)
    (source / "paper_tables").symlink_to(PROJECT / "paper_tables")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", "dist"]
    done = subprocess.run(build, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (made,) = source.glob("dist/*.whl")
    return ZipFile(made)


@pytest.fixture(scope="module")
def metadata(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_string(wheel.read(name).decode())


def needed(requirements, extra=""):
    "Names of distributions, as `pip` would install them for this list."
    found, waiting = set(), [(Requirement(text), extra) for text in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name not in found:
            found.add(name)
            further = [Requirement(text) for text in distribution(name).requires or []]
            waiting += [(needs, of) for needs in further for of in ("", *requirement.extras)]
    return found


@pytest.fixture(scope="module")
def run(wheel, metadata, tmp_path_factory):
    "Runs code with the unpacked wheel, refusing modules of what else happens to be installed here."
    folder = tmp_path_factory.mktemp("unpacked")
    wheel.extractall(folder)
    base = needed(metadata.get_all("Requires-Dist"))
    modules = packages_distributions()
    others = {
        module
        for module, owners in modules.items()
        if not {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners} & (base | {"disentangle-repro"})
    }
    assert {"nbdev", "pytest", "papermill", "matplotlib", "IPython"} <= others and not {"torch", "numpy"} & others

    def run(code, also=frozenset(), cache=folder):
        code = REFUSE.format(refused=others | also, folder=str(folder)) + code
        own = {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cache), "DISENTANGLE_DATA": ""}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=folder, env=os.environ | own, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    run.folder = folder
    return run


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    source = Path(wheel.filename).parents[1]
    files = {str(p.relative_to(source)) for p in (source / "disentangle_repro").rglob("*.*") if p.is_file()}
    proofs = {name for name in files if name.endswith("/proofs.py")} - {"disentangle_repro/core/proofs.py"}
    assert len(proofs) == 10
    of_lab = ("disentangle_repro/lab/", "disentangle_repro/templates/report/", "disentangle_repro/static/")
    files -= proofs | {"disentangle_repro/_modidx.py"} | {name for name in files if name.startswith(of_lab)}
    files |= {"disentangle_repro/static/style.css"}
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert {name for name in held if not name.startswith(KEPT)} == files
    assert {Path(name).suffix for name in files} == {".py", ".typed", ".html", ".css"}
    assert any(name.endswith("/LICENSE") for name in wheel.namelist())


def test_trained_models_are_the_checkouts(wheel):
    tables = PROJECT / "paper_tables"
    runs = [path.parents[1].name for path in tables.glob("results/*/model/model.safetensors")]
    names = ("model/model.safetensors", "model/card.json", "run.json")
    kept = {tables / f"results/{run}/{name}" for run in runs for name in names}
    assert {"-".join(run.split("-")[:2]) for run in runs} >= {"qlae-ae", "qlae-qlae", "tripod-tripod"}
    assert len(kept) == 3 * len(runs) > 0
    contents = {name: wheel.read(name) for name in wheel.namelist() if name.startswith(KEPT)}
    assert contents == {KEPT + path.relative_to(tables).as_posix(): path.read_bytes() for path in kept}


def test_models_are_there_outside_a_checkout_and_a_file_is_scored(run, tmp_path):
    rng = np.random.default_rng(0)
    sources = rng.integers(4, size=(400, 3))
    np.savez(run.folder / "latents.npz", sources=sources, latents=sources + 0.1 * rng.normal(size=sources.shape))
    asked = {"away": str(tmp_path), "n": len([*PROJECT.glob("paper_tables/results/*/model")])}
    assert run(OUTSIDE.format(**asked), cache=tmp_path).split() == ["QLAE", "Autoencoder", "True"]
    said = run(SCORE, also=NOT_TO_SCORE, cache=tmp_path)
    assert re.search(r"InfoM +modularity +0\.9\d\d +0\.\d{3} +0\.\d{3} +400", said), said


def test_commands_can_be_called_and_those_that_need_a_checkout_say_so_in_one_line(run):
    said = run(ENTRY_POINTS + EACH.format(commands=NEED_A_CHECKOUT)).splitlines()
    assert said[1::2] == [f"{arguments[0]} 2" for arguments in NEED_A_CHECKOUT]
    assert len(said) == 2 * len(NEED_A_CHECKOUT)
    assert all(re.fullmatch(r"disentangle\S+.* works in a checkout of .*: /.*", line) for line in said[::2]), said


def test_what_an_index_shows(metadata):
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().strip() == (PROJECT / "README.md").read_text().strip()
    assert metadata["License"] == "Apache-2.0" and metadata["Requires-Python"] == ">=3.11"


def test_every_module_can_be_imported_or_says_what_it_needs(run):
    failed = json.loads(run(IMPORT_ALL))
    assert set(failed) == OPTIONAL, failed
    for module, message in failed.items():
        assert f"pip install '{module.rpartition('.')[2]}>=" in message, message


@pytest.mark.whole
def test_what_an_extra_brings_is_asked_for_by_its_name(run):
    said = run(WITHOUT_EXTRAS).splitlines()
    for package, message in zip(("distributed", "matplotlib"), said, strict=True):
        assert f"pip install {package} " in message, message
