"What `make plan` says: how many runs, what is done, hours of several workers, bytes."

import json
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.plan import cost
from disentangle_repro.lab.plan.cost import Rates, Work, asked_runs, noise, step_key, summary, with_costs
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.plan.specs import run_spec, wanted
from disentangle_repro.lab.runs.assemble import assemble
from disentangle_repro.lab.tables import make
from disentangle_repro.papers import PAPERS
from disentangle_repro.train import Store
from disentangle_repro.train.loop import save
from disentangle_repro.train.speed import Counted

SMOKE, PAPER = Request(SCALES["smoke"]), Request(SCALES["paper"])
ONE = Rates("one", 1e12, 1e12)
TRAININGS = {"qlae": 48, "tripod": 28, "factorqvae": 35, "asymmetry": 12, "psa": 39}
MEASUREMENTS = {"asymmetry": 2, "tripod": 3, "psa": 18, "qlae": 1}


@pytest.fixture
def store(tmp_path, monkeypatch):
    "A store of its own, a folder for data sets of its own, and a device whose rate is known."
    store = Store(tmp_path / "runs", tmp_path / "results")
    monkeypatch.setattr(cost, "project_store", lambda: store)
    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(cost, "measured_rates", lambda works: ONE)
    return store


def planned(papers, request, store, *which):
    "The runs of some papers; each training takes an hour."
    runs = asked_runs(papers, request, store, *which)
    trainings = runs.spec[runs.key != ""]
    works = {step_key(s): (s, Work(3600e12 / s.part("training")["steps"], 10)) for s in trainings}
    return with_costs(runs, works, ONE)


def every_paper(request, store):
    return planned(list(PAPERS), request, store)


def test_as_many_runs_as_make_tables_does(store):
    runs = every_paper(SMOKE, store)
    counted = runs.groupby(["stage", "paper"]).size()
    assert counted["trainings"].to_dict() == TRAININGS and counted["measurements"].to_dict() == MEASUREMENTS
    assert "tuning" not in counted and runs.id.is_unique and not runs.done.any()
    assert runs.training.sum() == pytest.approx(sum(TRAININGS.values()))
    assert (runs.other[runs.training > 0] > cost.OTHER / 3600).all() and not runs.other[runs.training == 0].any()


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
    interrupted = assemble(specs[5], noise(specs[5], 20)[0])
    interrupted.updates = 2
    save(interrupted, store.folder(specs[5]) / "checkpoint.pt")
    (store.folder(specs[6]) / "checkpoint.pt").write_bytes(b"half a file")
    runs = every_paper(SMOKE, store).set_index("id").loc[[spec.id for spec in specs]]
    assert runs.done.tolist() == [True] * 5 + [False] * 34
    assert runs.left.tolist() == [0] * 5 + [3] + [5] * 33
    assert runs.training.sum() == pytest.approx(33 + 3 / 5)
    assert (runs.bytes[:5] == 0).all() and (runs.bytes[5:] == 10 + cost.NOTEBOOK).all()
    assert (runs.checkpoints[:5] == 0).all() and (runs.checkpoints[5:] == 6 * 10).all()
    row = summary(runs).iloc[-1]
    assert (row["runs"], row["done"], row["training, h"]) == (39, 5, "34")


def test_nothing_is_tried_where_all_is_done(store):
    for spec in wanted(["qlae"], SMOKE, store, ["ae"], ["mpi3d"]).trainings:
        store.finish(spec, {"scores": {}})
    runs = planned(["qlae"], SMOKE, store, ["ae"], ["mpi3d"])
    assert runs.done.all() and cost.hours_with(runs, 1) == 0
    assert summary(runs)["s/update"].tolist() == ["", ""]


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


def test_an_unknown_paper_is_refused(store, capsys):
    with pytest.raises(ValueError, match="papers is 'qlea' but must be one of 'qlae'"):
        asked_runs(["qlea"], SMOKE, store)
    with pytest.raises(SystemExit):
        cost.main(["--papers", "qlea"])
    printed = capsys.readouterr().err
    assert "argument --papers: value is 'qlea'" in printed and "Did you mean 'qlae'?" in printed


def test_the_command_prints_tables_and_sums(store, capsys):
    assert cost.main("--papers qlae psa --scale smoke --workers 5".split()) == 0
    printed = capsys.readouterr().out
    assert "left: trainings 87 of 87; measurements 19 of 19 runs" in printed
    assert "h with 5" in printed and "hours, one: training" in printed and "psa_proj" not in printed
    assert "NOT in the hours" not in printed and "free here" in printed
    assert cost.main("--papers psa --scale smoke".split()) == 0 and "psa_proj" in capsys.readouterr().out
    assert cost.main("--papers asymmetry --scale smoke --source official".split()) == 0
    assert "published files that are not there yet: sprites, clevr6" in capsys.readouterr().out


def test_cores_here_are_no_gpus_elsewhere_and_years_are_called_years(store, monkeypatch, capsys):
    monkeypatch.setattr(cost, "n_workers", lambda: 7)
    psa = "--papers psa --scale paper --models ae".split()
    assert cost.main(psa) == 0 and " with 1, " in (here := capsys.readouterr().out) and " with 7" in here
    assert cost.main([*psa, "--device", "h100"]) == 0 and " with 7" not in (there := capsys.readouterr().out)
    assert " with 1, " in there and " with 8" in there and "years)" not in here + there
    monkeypatch.setattr(cost, "measured_rates", lambda works: Rates("slow", 1e6, 1e6))
    assert cost.main(psa) == 0 and "years) with 7\nmore than a year: --device" in capsys.readouterr().out


def test_a_damaged_record_of_tuning_is_named(store):
    spec = wanted(["qlae"], PAPER, store, ["qlae"], ["mpi3d"]).tuning[0]
    path = store.finish(spec, {"scores": {"infom": 0.5}})
    record = json.loads(path.read_text())
    for place in store.records(spec.id):
        place.write_text(json.dumps({**record, "scores": {"infom": 0.9}}))
    arguments = "--papers qlae --models qlae --datasets mpi3d --scale paper".split()
    with pytest.raises(ValueError, match=f"{path}: has been altered"):
        cost.main(arguments)


def test_the_plan_and_the_tables_agree_on_what_is_wanted(store, monkeypatch):
    asked = []
    monkeypatch.setattr(make, "project_store", lambda: store)
    monkeypatch.setattr(make, "execute", lambda notebook, output, **parameters: output.parent)
    monkeypatch.setattr(make, "do_runs", lambda specs, *rest, **how: asked.extend(s.id for s in specs) or {})
    make.make_tables(["tripod", "psa"], SMOKE, make.parser().parse_args([]))
    assert sorted(set(asked)) == sorted(asked_runs(["tripod", "psa"], SMOKE, store).id)


def test_a_gpu_that_is_not_here_is_estimated(store, capsys, monkeypatch):
    "Hours and gigabytes, marked as estimates; nothing is tried, and this machine's disk and memory are not named."
    monkeypatch.setattr(cost, "measured_rates", lambda works: pytest.fail("something was tried"))
    request = "--papers qlae --models ae qlae --scale short --device".split()
    for device, name in (("h100", "NVIDIA H100 SXM"), ("h200", "NVIDIA H200 SXM")):
        assert cost.main([*request, device]) == 0
        printed = capsys.readouterr().out
        assert f"hours, {name}: training" in printed and "ESTIMATED" in printed and "its data sheet's rate" in printed
        assert "MORE than" not in printed
        assert "free" not in printed and "TUNED=reported" not in printed
    monkeypatch.setattr(cost.shutil, "disk_usage", lambda path: SimpleNamespace(free=1e6))
    monkeypatch.setattr(cost, "measured_rates", lambda works: ONE)
    assert cost.main(request[:-1]) == 0
    assert "; MORE than is free" in capsys.readouterr().out


def test_hours_in_each_precision_and_without_tuning_are_side_by_side(store, capsys, monkeypatch):
    monkeypatch.setitem(cost.DEVICES, "h100", Rates("a GPU", 1e12, 4e12, 2e12))
    assert cost.main("--papers qlae --models qlae --datasets mpi3d --scale paper --device h100".split()) == 0
    printed = capsys.readouterr().out
    fp32, tf32, bf16 = (float(word.replace(",", "")) for word in re.search("as asked +(.*)", printed)[1].split())
    reported, *_ = (float(word.replace(",", "")) for word in re.search("TUNED=reported +(.*)", printed)[1].split())
    assert 1.8 < fp32 / tf32 <= 2.01 and 3.5 < fp32 / bf16 <= 4.01 and reported < 0.7 * fp32
    assert "free" not in printed.split("hours, a GPU")[1]
    assert "fewest hours: make tables with the options of this plan and TUNED=reported SET=training.prec" in printed
    assert "workers, a GPU each: " in printed and "main memory: images of 8 runs at once" in printed


def test_counts_of_scale_paper_are_stored_and_those_of_today(store, monkeypatch):
    "Counting them took a minute and a half, in which `make plan` printed nothing."
    kinds, stored = {step_key(spec): spec for spec in cost.every_kind()}, cost.stored_works()
    assert {cost.digest(key) for key in kinds} == stored.keys()
    for spec in (run_spec("psa", "psa", "clevr6", PAPER), run_spec("qlae", "infowgan_gp", "shapes3d", PAPER)):
        assert list(cost.count_work(spec)) == pytest.approx(list(stored[cost.digest(step_key(spec))]), rel=1e-3)
    monkeypatch.setattr(cost, "count_work", lambda spec: pytest.fail("counted again"))
    works, problems = cost.count_kinds(asked_runs(["qlae", "psa"], PAPER, store))
    assert works and not problems


def test_an_update_takes_at_least_the_time_to_call_its_operations():
    rates = Rates("", 1.0, 8.0, 4.0, call=0.5)
    assert rates.seconds(Work(16.0, 0, 2.0), "bf16") == 2.0 and rates.seconds(Work(16.0, 0, 10.0), "bf16") == 5.0
    assert rates.seconds(Work(12.0, 0), "tf32") == 3.0 and rates.seconds(Work(12.0, 0, 0, True), "tf32") == 9.0


def test_a_model_that_cannot_be_counted_is_named(store, capsys, monkeypatch):
    def count(spec):
        if spec.model == "ae":
            raise ValueError("ae reads values, so its operations cannot be counted.")
        return Work(1e9, 10)

    monkeypatch.setattr(cost, "count_work", count)
    assert cost.main("--papers qlae --models ae qlae --scale smoke".split()) == 0
    assert "NOT in the hours: ae reads values" in capsys.readouterr().out


def test_what_is_estimated_is_what_one_rate_and_the_operations_give(store):
    runs = asked_runs(["qlae"], PAPER, store, ["ae"], ["mpi3d"])
    works, _ = cost.count_kinds(runs)
    ((_, work),) = works.values()
    frame = with_costs(runs, works, ONE)
    trainings = frame[frame.stage == "trainings"]
    assert (trainings.seconds == work.operations / 1e12).all()
    assert trainings.training.sum() == pytest.approx(5 * 200_000 * work.operations / 1e12 / 3600)


def test_every_model_of_every_paper_can_be_counted(store):
    "At scale smoke, where it is quick; and as much as a real step multiplies."
    for paper in PAPERS:
        for spec in {spec.model: spec for spec in wanted([paper], SMOKE, store).trainings}.values():
            assert 0 < cost.count_work(spec).operations < math.inf
    spec = run_spec("qlae", "qlae", "mpi3d", SMOKE)
    training = assemble(spec, noise(spec, 20)[0])
    with Counted() as counted:
        training.update()
    assert cost.count_work(spec).operations == pytest.approx(counted.operations, rel=1e-3)
