"What `make plan` says: how many runs, what is done, hours of several workers, bytes."

import json
import math
from dataclasses import replace

import pandas as pd
import pytest
import torch

from disentangle_repro.core.hyperparameters import merged
from disentangle_repro.core.scale import SCALES
from disentangle_repro.data.load import rendered_file
from disentangle_repro.papers import PAPERS
from disentangle_repro.plan import cost, probe
from disentangle_repro.plan.cost import files_needed, hours_with, makespan, runs_and_costs, summary
from disentangle_repro.plan.probe import (
    Cost,
    Probe,
    checkpoint_bytes,
    noise,
    probe_training,
    scoring_seconds,
    step_key,
    with_samples,
)
from disentangle_repro.plan.request import Request
from disentangle_repro.plan.specs import run_spec, wanted
from disentangle_repro.runs.assemble import assemble, images_needed
from disentangle_repro.tables import make
from disentangle_repro.train import Store
from disentangle_repro.train.loop import save

SMOKE, PAPER = Request(SCALES["smoke"]), Request(SCALES["paper"])
CPU = torch.device("cpu")
TRAININGS = {"qlae": 48, "tripod": 28, "factorqvae": 35, "asymmetry": 12, "psa": 35}
MEASUREMENTS = {"asymmetry": 2, "tripod": 2, "psa": 15}


@pytest.fixture
def store(tmp_path, monkeypatch):
    "A store of its own, a folder for data sets of its own, and a device on which everything takes an hour."
    store = Store(tmp_path / "runs", tmp_path / "results")
    monkeypatch.setattr(cost, "project_store", lambda: store)
    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(cost, "measured_costs", an_hour_a_run)
    return store


def an_hour_a_run(specs, device, progress=True):
    def hour(spec):
        return Probe(3600 / spec.part("training")["steps"], spec.part("training")["batch_size"], checkpoint=10)

    return {step_key(spec): Cost(hour(spec), scoring=1800) for spec in specs}


def every_paper(request, store):
    return runs_and_costs(list(PAPERS), request, store, device=CPU, progress=False)


def test_as_many_runs_as_make_tables_does(store):
    runs = every_paper(SMOKE, store)
    counted = runs.groupby(["stage", "paper"]).size()
    assert counted["trainings"].to_dict() == TRAININGS and counted["measurements"].to_dict() == MEASUREMENTS
    assert "tuning" not in counted and runs.id.is_unique and not runs.done.any()
    assert runs.training.sum() == pytest.approx(sum(TRAININGS.values()))
    assert runs.scoring.sum() == pytest.approx(sum(TRAININGS.values()) / 2)


def test_tuning_is_counted_before_it_is_done(store):
    runs = every_paper(PAPER, store).groupby("stage").size()
    qlae = wanted(["qlae"], PAPER, store)
    assert len(qlae.trainings) == 12 * 4 * 5 and {spec.seed for spec in qlae.tuning} == {0, 1}
    assert runs["tuning"] == 2 * 4 * sum(
        len(PAPERS[paper].setting(model).entries())
        for paper in ("qlae", "tripod")
        for model in {name for table in PAPERS[paper].tables for name in table.models}
        if PAPERS[paper].setting(model).grid
    )


def test_what_is_done_is_not_done_again(store):
    specs = wanted(["psa"], SMOKE, store).trainings
    for spec in specs[:5]:
        store.finish(spec, {"scores": {}})
    interrupted = assemble(specs[5], noise(specs[5], 20).images)
    interrupted.updates = 2
    save(interrupted, store.folder(specs[5]) / "checkpoint.pt")
    (store.folder(specs[6]) / "checkpoint.pt").write_bytes(b"half a file")
    runs = every_paper(SMOKE, store).set_index("id").loc[[spec.id for spec in specs]]
    assert runs.done.tolist() == [True] * 5 + [False] * 30
    assert runs.left.tolist() == [0] * 5 + [3] + [5] * 29
    assert runs.training.sum() == pytest.approx(29 + 3 / 5)
    assert (runs.bytes[:5] == 0).all() and (runs.bytes[5:] == 2 * 10 + cost.NOTEBOOK).all()
    row = summary(runs).iloc[-1]
    assert (row["runs"], row["done"], row["training, h"]) == (35, 5, "30")


def test_nothing_is_tried_where_all_is_done(store):
    for spec in wanted(["qlae"], SMOKE, store, ["ae"], ["mpi3d"]).trainings:
        store.finish(spec, {"scores": {}})
    runs = runs_and_costs(["qlae"], SMOKE, store, ["ae"], ["mpi3d"], CPU)
    assert runs.done.all() and hours_with(runs, 1) == 0
    assert summary(runs)["s/update"].tolist() == ["", ""]


@pytest.mark.parametrize(
    ("hours", "workers", "ends"),
    [([], 1, 0), ([2, 3], 1, 5), ([2, 3], 5, 3), ([3, 3, 2, 2, 2], 2, 7), ([1] * 7, 3, 3), ([5, 4, 3, 3, 3], 3, 7)],
)
def test_workers_take_the_longest_first(hours, workers, ends):
    assert makespan(hours, workers) == ends


def test_stages_wait_for_each_other():
    stages, hours = ["tuning", "tuning", "trainings"], {"training": [1.0, 2.0, 3.0], "scoring": [0.5, 0, 0]}
    runs = pd.DataFrame({"stage": stages, **hours})
    assert [hours_with(runs, n) for n in (1, 2, 100)] == [6.5, 5, 5]


def test_a_probe_is_of_the_runs_own_update_and_checkpoint(tmp_path):
    spec = run_spec("factorqvae", "factorqvae", "shapes3d", SMOKE)
    tried = probe_training(spec, CPU)
    assert tried.seconds > 0 and tried.batch_size == spec.part("training")["batch_size"]
    training = assemble(spec, noise(spec, 20).images)
    for _ in training.steps:
        training.update()
    save(training, tmp_path / "checkpoint.pt")
    assert (tmp_path / "checkpoint.pt").stat().st_size == checkpoint_bytes(training) == tried.checkpoint


def test_what_takes_too_long_is_measured_in_part():
    spec = run_spec("qlae", "ae", "shapes3d", Request(SCALES["cpu"]))
    assert probe_training(spec, CPU, longest=0).batch_size == 2 == spec.part("training")["batch_size"] // 8


@pytest.mark.parametrize(("paper", "model", "dataset"), [
    ("qlae", "infowgan_gp", "mpi3d"), ("asymmetry", "transformer-transformer-rec", "sprites"),
    ("psa", "psa", "objects_room"),
])  # fmt: skip
def test_scoring_is_measured_of_every_kind_of_run(paper, model, dataset):
    spec = with_samples(run_spec(paper, model, dataset, SMOKE), 60)
    assert 0 < scoring_seconds(spec, assemble(spec, noise(spec, 2).images).model, CPU) < math.inf


def weights(multiinformation, hessian):
    return {"model.multiinformation": multiinformation, "model.hessian": hessian}


def test_seeds_and_weights_share_a_probe_and_zero_does_not():
    spec = run_spec("tripod", "tripod", "shapes3d", PAPER)
    alike = run_spec("tripod", "tripod", "isaac3d", PAPER, seed=3, tuned=weights(0.5, 0.25))
    different = [
        run_spec("tripod", "tripod", "shapes3d", PAPER, tuned=weights(0.5, 0.0)),
        run_spec("tripod", "tripod", "shapes3d", SMOKE),
        run_spec("tripod", "tripod_finer_quantization", "shapes3d", PAPER),
        run_spec("tripod", "tripod", "shapes3d", replace(PAPER, protocol="code")),
    ]
    assert step_key(spec) == step_key(alike)
    assert len({step_key(one) for one in (spec, *different)}) == 5


def test_data_sets_are_counted_until_they_are_there(store):
    spec = run_spec("psa", "psa", "sprites", SMOKE)
    small = {"data": {"images": 3}, "scoring": {"samples": 2}}
    few = replace(spec, hyperparameters=merged(spec.hyperparameters, small))
    assert images_needed(few) == {"train": 3, "test": 2, "validation": 2}
    files = files_needed(few)
    scene = cost.SCENES["sprites"]
    assert [*files.values()] == [n * (64 * 64 * 4 + 8 * len(scene.names)) for n in (3, 2, 2)]
    assert rendered_file(scene, 3, 0, workers=1) == next(iter(files))
    assert [*files_needed(few)] == [*files][1:]
    assert files_needed(replace(few, source="official")) == {}


def test_an_unknown_paper_is_refused(store, capsys):
    with pytest.raises(ValueError, match="papers is 'qlea' but must be one of 'qlae'"):
        runs_and_costs(["qlea"], SMOKE, store)
    with pytest.raises(SystemExit):
        cost.main(["--papers", "qlea"])
    assert "argument --papers: value is 'qlea'" in (said := capsys.readouterr().err) and "Did you mean 'qlae'?" in said


def test_the_command_prints_tables_and_sums(store, capsys):
    assert cost.main("--papers qlae psa --scale smoke --workers 5 --probe".split()) == 0
    printed = capsys.readouterr().out
    assert "left: trainings 83 of 83; measurements 15 of 15 runs" in printed
    assert "h with 5" in printed and "scoring 42 h" in printed and "psa_proj" in printed
    assert cost.main("--papers qlae --scale smoke --no-probe".split()) == 0
    assert "h with" not in capsys.readouterr().out
    assert cost.main("--papers asymmetry --scale smoke --no-probe --source official".split()) == 0
    assert "published files that are not there yet: sprites, clevr6" in capsys.readouterr().out


def test_what_nobody_asks_for_is_said(store, capsys):
    with pytest.raises(SystemExit, match="2"):
        cost.main("--papers qlae --models psa --scale smoke".split())
    assert "models is psa but tables of qlae have none of these" in capsys.readouterr().err


def test_a_damaged_record_of_tuning_is_named(store, capsys):
    spec = wanted(["qlae"], PAPER, store, ["qlae"], ["mpi3d"]).tuning[0]
    path = store.finish(spec, {"scores": {"infom": 0.5}})
    record = json.loads(path.read_text())
    for place in store.records(spec):
        place.write_text(json.dumps({**record, "scores": {"infom": 0.9}}))
    arguments = "--papers qlae --models qlae --datasets mpi3d --scale paper --no-probe".split()
    assert cost.main(arguments) == 1
    assert f"make plan: {path}: has been altered" in capsys.readouterr().out


def test_the_plan_and_the_tables_agree_on_what_is_wanted(store, monkeypatch):
    asked = []
    monkeypatch.setattr(make, "project_store", lambda: store)
    monkeypatch.setattr(make, "execute", lambda notebook, output, **parameters: output.parent)
    monkeypatch.setattr(make, "do_runs", lambda specs, *rest, **how: asked.extend(s.id for s in specs) or {})
    make.make_tables(["tripod", "psa"], SMOKE)
    assert sorted(set(asked)) == sorted(runs_and_costs(["tripod", "psa"], SMOKE, store).id)


def lines_of(printed: str, beginning: str) -> list[str]:
    return [line for line in printed.splitlines() if line.startswith(beginning)]


def test_without_a_gpu_short_is_estimated_for_one(store, capsys, monkeypatch):
    "Hours and gigabytes, marked as estimates; nothing of the size of the scale is tried."
    tried = []
    monkeypatch.setattr(probe, "probe_training", lambda spec, *_, **__: tried.append(spec.id) or Probe(60.0, 1, 10))
    assert cost.main("--papers qlae --models ae qlae --scale short".split()) == 0
    printed = capsys.readouterr().out
    assert len(tried) == 1
    (here, gpu) = lines_of(printed, "hours, ")
    assert "CPU" in here and "NVIDIA H100 SXM, ESTIMATED" in gpu and "starting and loading" in gpu
    (memory,) = lines_of(printed, "memory of a GPU, ESTIMATED: up to ")
    assert " GB a run (qlae's " in memory and "of 80.0 GB" in memory
    assert cost.main("--papers qlae --models ae qlae --scale short --device h200".split()) == 0
    (only,) = lines_of(printed := capsys.readouterr().out, "hours, ")
    assert "H200" in only and "of 141.0 GB" in printed and "half of the rates of its data sheet" in printed
    assert len(tried) == 1


def test_what_is_estimated_is_what_one_rate_and_the_operations_give(store, monkeypatch):
    "A device of 1 TFLOP/s that moves for nothing: hours are operations."
    specs = wanted(["qlae"], PAPER, store, ["ae"], ["mpi3d"]).trainings
    works, rates = probe.count_kinds(specs), probe.Rates("one", 1e12, 2e12, math.inf, math.inf)
    (found,) = probe.estimated_costs(works, rates).values()
    ((_, work),) = works.values()
    assert found.update.seconds == pytest.approx(work.operations / 1e12)
    assert found.memory > 4 * work.checkpoint / 3 + 460_800 * 64 * 64 * 3
    costs = {"costs": lambda _: probe.estimated_costs(works, rates)}
    frame = runs_and_costs(["qlae"], PAPER, store, ["ae"], ["mpi3d"], **costs)
    of_ae = frame[frame.stage == "trainings"]
    assert of_ae.training.sum() == pytest.approx(5 * 200_000 * work.operations / 1e12 / 3600)


def test_every_model_of_every_paper_can_be_counted(store):
    "At scale smoke, where it is quick; and as much as a real step multiplies."
    for paper in PAPERS:
        for spec in {spec.model: spec for spec in wanted([paper], SMOKE, store).trainings}.values():
            work = probe.count_work(spec)
            assert 0 < work.operations < math.inf and work.held > 0 < work.moved
    spec = run_spec("qlae", "qlae", "mpi3d", SMOKE)
    training = assemble(spec, noise(spec, 20).images)
    with probe.Counted() as counted:
        training.update()
    assert probe.count_work(spec).operations == pytest.approx(counted.operations, rel=1e-3)
