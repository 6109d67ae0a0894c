"The RO-Crate of the results: of the form that version 1.1 asks for, and of what the folder holds."

import json
import re

from disentangle_repro.command import main
from disentangle_repro.core.files import project_root
from disentangle_repro.lab.plan.specs import run_spec
from disentangle_repro.lab.runs.crate import DESCRIPTION, crate
from disentangle_repro.lab.study.design import REQUEST, keep
from disentangle_repro.train.store import Store, project_store

RESULTS = project_root() / "paper_tables" / "results"


def store_in(folder):
    return Store(folder / "paper_tables" / "runs", folder / "paper_tables" / "results")


def finished(store):
    spec = run_spec("qlae", "qlae", "shapes3d", REQUEST, REQUEST.scale.first_seed)
    (store.folder(spec) / "latents.npz").write_bytes(b"latents")
    store.finish(spec, {"scores": {"infom": 0.5}, "environment": {"commit": "0123abc"}})
    keep(spec, store)
    return spec


def references(value):
    "Every `@id` that something refers to."
    if isinstance(value, list):
        return [found for one in value for found in references(one)]
    return [value["@id"]] if isinstance(value, dict) else []


def test_it_lists_every_kept_file():
    (root,) = [entity for entity in crate(project_store())["@graph"] if entity["@id"] == "./"]
    there = {path.relative_to(RESULTS).as_posix() for path in RESULTS.rglob("*") if path.is_file()}
    assert {part["@id"] for part in root["hasPart"]} == {p for p in there if not p.endswith(".damaged")} - {DESCRIPTION}


def test_the_form_is_that_of_ro_crate_1_1():
    found = crate(project_store())
    assert found["@context"] == "https://w3id.org/ro/crate/1.1/context" and set(found) == {"@context", "@graph"}
    of = {entity["@id"]: entity for entity in found["@graph"]}
    assert len(of) == len(found["@graph"]) and all(entity["@type"] for entity in of.values())
    about = of["ro-crate-metadata.json"]
    assert about["about"] == {"@id": "./"} and about["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    root = of["./"]
    assert root["@type"] == "Dataset" and {"name", "description", "license"} <= root.keys()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", root["datePublished"])
    for entity in (entity for entity in of.values() if entity is not about):
        for found in (found for value in entity.values() for found in references(value)):
            assert found in of, f"{entity['@id']} refers to {found}"


def test_every_record_has_paper_model_data_set_seed_commit_and_licence():
    of = {entity["@id"]: entity for entity in crate(project_store())["@graph"]}
    for path in project_store().all_kept():
        record, file = json.loads(path.read_text()), of[path.name]
        (made,) = [e for e in of.values() if e["@type"] == "CreateAction" and {"@id": path.name} in e["result"]]
        given = {of[part["@id"]]["name"]: of[part["@id"]]["value"] for part in made["object"]}
        spec = record["spec"]
        assert (given["model"], given["data set"], given["seed"]) == (spec["model"], spec["dataset"], spec["seed"])
        assert of[made["instrument"]["@id"]]["version"] == record["environment"]["commit"]
        assert "arxiv.org" in file["citation"]["@id"] and file["license"] == {"@id": "https://spdx.org/licenses/Apache-2.0"}


def test_the_command_writes_it_and_nothing_takes_it_for_a_record(tmp_path, monkeypatch, capsys):
    (tmp_path / "settings.ini").write_text("lib_name = disentangle_repro\n")
    monkeypatch.chdir(tmp_path)
    store = store_in(tmp_path)
    spec = finished(store)
    assert main(["crate"]) == 0 and capsys.readouterr().out.strip() == str(store.results / DESCRIPTION)
    assert f"latents/{spec.id}.npz" in (store.results / DESCRIPTION).read_text()
    assert store.everything()[1] == [] and len(store.all_kept()) == 1, "taken for a record"
