"Records that are kept: whole, in today's format, and found by the plan that made them."

from dataclasses import replace

from disentangle_repro.experiment.run_spec import RunSpec, fingerprint
from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.plan.specs import is_older, run_spec
from disentangle_repro.lab.study.design import PILOT_SEED
from disentangle_repro.papers import PAPERS, measurement_of
from disentangle_repro.train.store import project_store, read_record

KEPT = project_store().all_kept()


def planned(spec):
    "What the plan asks for today in the place of a run, by entry of a grid."
    request = Request(SCALES[spec.scale], spec.source, spec.protocol)
    for tuned in (None, *PAPERS[spec.paper].setting(spec.model).entries()):
        yield run_spec(spec.paper, spec.model, spec.dataset, request, spec.seed, tuned)


def test_there_are_kept_records():
    assert KEPT


def is_found(run, path) -> bool:
    "Whether the plan asks today for the run of a kept record, at the record's revision or a later one."
    spec = RunSpec(**read_record(path, run)["spec"])
    if measurement_of(spec) or spec.model == "spot_check":
        return True
    scale = SCALES[spec.scale]
    if scale.study and spec.seed not in range(scale.first_seed, PILOT_SEED):
        return True  # of an earlier design, or a pilot: no table asks for it
    return run in {plan.id for plan in planned(spec)}


def test_every_kept_record_is_found_by_the_plan_that_made_it():
    assert [run for run, path in KEPT.items() if not is_found(run, path)] == []


def test_a_new_default_and_the_order_of_keys_change_no_name_but_a_revision_does():
    training = next(path for run, path in KEPT.items() if run.startswith("qlae-ae-"))
    spec = RunSpec(**read_record(training, training.parent.name)["spec"])
    stated = {part: spec.part(part) for part in ("training", "scoring", "optimizer", "model", "data")}
    assert replace(spec, hyperparameters=stated).id == spec.id
    assert replace(spec, revision=spec.revision + 1).id != spec.id
    assert spec.part("training")["precision"] == "bf16"
    fp32 = {**spec.hyperparameters, "training": {**spec.hyperparameters["training"], "precision": "fp32"}}
    assert replace(spec, hyperparameters=fp32).id != spec.id


def test_what_a_name_is_made_from_stays_what_it_is():
    "The fingerprint of a specification with nothing but defaults, written down once."
    plain = RunSpec("qlae", "ae", "shapes3d", "rendered", "smoke", 0, "paper", {"training": {"steps": 40}})
    content = {"paper": "qlae", "model": "ae", "dataset": "shapes3d", "source": "rendered", "scale": "smoke", "seed": 0}
    content |= {"protocol": "paper", "hyperparameters": {"training": {"steps": 40}}}
    assert plain.id == f"qlae-ae-shapes3d-rendered-smoke-paper-seed0-{fingerprint(content)[:8]}"
    assert plain.id.endswith("-009176ed")


STORED = {  # of seed 1 on CLEVR6 in the study, written down once
    "ae": "e6b8ec71", "monet": "0428391a", "sa": "6d1d00c7", "sa_noa": "38855d3b",
    "psa": "79d96b5b", "psa_noa": "4a343887", "psa_proj": "9fff94d2",
}  # fmt: skip
OLDER = {"psa": "3cf22419", "psa_noa": "c36e87f2", "psa_proj": "ec2e5c17",  # one slot took every image
         "sa_noa": "08631885"}  # not comparable with PSA-NoA  # fmt: skip


def test_a_reading_of_some_models_renames_no_run_of_the_others():
    planned = {name: run_spec("psa", name, "clevr6", Request(SCALES["study"]), 1) for name in STORED}
    assert {name: spec.id[-8:] for name, spec in planned.items()} == STORED
    assert {name for name, spec in planned.items() if spec.revision > 4} == OLDER.keys()
    stored = [RunSpec(**read_record(path, run)["spec"]) for run, path in KEPT.items() if run[-8:] in OLDER.values()]
    assert stored and all(map(is_older, stored)), "records of the older reading would be in tables"
