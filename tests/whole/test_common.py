"The comparison of all models on one network: added on request only, the same for all but their losses and optimisers."

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from disentangle_repro.common import NEW, PAPER, ROUNDS
from disentangle_repro.core.extensions import remember
from disentangle_repro.experiment.hyperparameters import merged
from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.plan.cost import noise
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.plan.specs import run_spec, wanted
from disentangle_repro.lab.runs.assemble import assemble
from disentangle_repro.papers import PAPERS, REGISTRIES, add_paper
from disentangle_repro.train.store import Store

ROOT = Path(__file__).parents[2]
EXTENSION = "paper_tables/common/common_comparison.py"
ATTRIBUTES = [paper for paper in PAPERS.values() if paper.scoring == "latents"]


@pytest.fixture
def added():
    restore = remember(*REGISTRIES)
    add_paper(PAPER)
    yield
    restore()


def spec_of(name, scale="smoke"):
    spec = run_spec("common", name, "shapes3d", Request(SCALES[scale]))
    own = {"model": {"width": 0.1}, "training": {"batch_size": 2}}
    if "gan" in name:
        own["model"]["critic_steps"] = 1
    return replace(spec, hyperparameters=merged(spec.hyperparameters, own))


def test_it_has_every_model_of_the_papers_first_tables_and_the_new_ones():
    printed = {paper.run_as(model) for paper in ATTRIBUTES for model in paper.tables[0].models}
    assert {*PAPER.models} == printed | {*NEW} and PAPER.tables[0].models == (*PAPER.models,)


def test_nobody_makes_it_unasked():
    assert PAPER.key not in PAPERS
    say = "import json; from disentangle_repro.core.extensions import load_extensions; load_extensions();"
    say += "from disentangle_repro.papers import PAPERS; print(json.dumps(list(PAPERS)))"
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "DISENTANGLE_EXTENSIONS": f",{EXTENSION}"}
    how = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True, "check": True}
    assert json.loads(subprocess.run([sys.executable, "-c", say], **how).stdout) == [*PAPERS, "common"]


def test_make_loads_it_where_it_is_named():
    def variable(*given):
        said = subprocess.run(["make", "-pn", "clean", *given], cwd=ROOT, capture_output=True, text=True).stdout
        (line,) = [line for line in said.splitlines() if line.startswith("DISENTANGLE_EXTENSIONS := ")]
        return [name for name in line.partition(":= ")[2].split(",") if name]

    assert variable("EXTENSIONS=") == variable("EXTENSIONS=", "PAPERS=qlae") == []
    assert variable("EXTENSIONS=x.py", "PAPERS=qlae common") == ["x.py", EXTENSION]


def test_all_share_everything_but_loss_and_optimiser(added, tmp_path):
    specs = wanted(["common"], Request(SCALES["paper"]), Store(tmp_path / "runs", tmp_path / "results"))
    assert not specs.tuning and not specs.measurements and len(specs.trainings) == 5 * len(PAPER.models)
    shared = set()
    for spec in specs.trainings:
        training = dict(spec.part("training"))
        assert training.pop("steps") == ROUNDS * training.pop("steps_per_round")
        shared.add(json.dumps(training, sort_keys=True))
        assert spec.part("scoring") == {"samples": 10_000}
        assert spec.part("model").get("family", "style") == "style"
    assert len(shared) == 1 and json.loads(shared.pop())["batch_size"] == 64


@pytest.mark.parametrize("name", PAPER.models)
def test_every_row_makes_a_round_on_the_same_networks(added, name):
    spec, plain = spec_of(name), spec_of("ae")
    images, sources = noise(spec, 16)
    training = assemble(spec, images, sources)
    for _ in training.steps:
        assert all(term.isfinite() for term in training.update().values())
    like = assemble(plain, images).model
    for part in ("encoder", "decoder"):
        ours, theirs = (getattr(model, part) for model in (training.model, like))
        shapes = [[tuple(p.shape) for p in network.parameters() if p.ndim == 4] for network in (ours, theirs)]
        assert type(ours) is type(theirs) and shapes[0] == shapes[1]
