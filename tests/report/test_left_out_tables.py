"A report made without the extension that added a table says that the table's page is left out."

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.plan.specs import run_spec
from disentangle_repro.lab.report import site as of


@pytest.mark.parametrize(("former", "said"), [(("mine_1", "qlae_1"), "mine_1"), (("qlae_1",), "")])
def test_tables_that_only_the_former_report_has_are_named(tmp_path, monkeypatch, capsys, former, said):
    def pages(names, folder):
        (folder / "tables").mkdir(parents=True)
        for name in names:
            (folder / "tables" / f"{name}.html").touch()
        return folder / "index.html"

    monkeypatch.setattr(of, "survey", lambda store: SimpleNamespace(seen=SimpleNamespace(found={})))
    monkeypatch.setattr(of, "checks_and_differences", lambda: (pd.DataFrame(), []))
    monkeypatch.setattr(of, "write_pages", lambda found, folder: pages(["qlae_1"], folder))
    pages(former, tmp_path / "report")
    of.make_report(None, tmp_path / "report")
    printed = capsys.readouterr().out
    assert (f"Left out of the former report: {said}: " in printed and "EXTENSIONS=" in printed) if said else not printed


def test_rows_that_only_an_extension_has_are_named(monkeypatch):
    spec = run_spec("qlae", "qlae", "shapes3d", Request(SCALES["smoke"]), seed=0)
    others = [replace(spec, model="narrow"), replace(spec, dataset="mine"), replace(spec, paper="new")]
    measured = replace(spec, model="spot_check", hyperparameters={"measurement": {"of": "qlae"}})
    runs = {str(i): SimpleNamespace(spec=each) for i, each in enumerate([spec, *others, measured, None])}
    said = of.rows_left_out(SimpleNamespace(found=runs))
    assert "narrow on shapes3d (qlae), qlae on mine (qlae), qlae on shapes3d (new): no loaded" in said
    assert "EXTENSIONS=" in said and not of.rows_left_out(SimpleNamespace(found={"0": SimpleNamespace(spec=spec)}))
