"A report made without the extension that added a row says that the row is left out."

from dataclasses import replace
from types import SimpleNamespace

from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.plan.specs import run_spec
from disentangle_repro.lab.report import site


def test_rows_that_only_an_extension_has_are_named():
    spec = run_spec("qlae", "qlae", "shapes3d", Request(SCALES["smoke"]), seed=0)
    others = [replace(spec, model="narrow"), replace(spec, dataset="mine"), replace(spec, paper="new")]
    measured = replace(spec, model="spot_check", hyperparameters={"measurement": {"of": "qlae"}})
    runs = {str(i): SimpleNamespace(spec=each) for i, each in enumerate([spec, *others, measured, None])}
    text = site.rows_left_out(SimpleNamespace(found=runs))
    assert "narrow on shapes3d (qlae), qlae on mine (qlae), qlae on shapes3d (new): no loaded" in text
    assert "EXTENSIONS=" in text and not site.rows_left_out(SimpleNamespace(found={"0": SimpleNamespace(spec=spec)}))
