"What all tests share: public metrics and models are imported with their annotations checked, see `annotations.py`."

import pytest
from jaxtyping import config, install_import_hook

SCORES = ("dci", "information_gaps", "inputs", "interventions", "label_free", "predictability", "reconstruction",
          "segmentation")  # fmt: skip
CHECKED = [f"disentangle_repro.scores.{name}" for name in SCORES]
CHECKED += [f"disentangle_repro.{name}" for name in ("qlae.infomec", "psa.slot_metrics", "asymmetry.slot_jacobian")]
CHECKED += [f"disentangle_repro.{name}" for name in ("models", "saved_models", "torchmetrics", "data.load")]

install_import_hook(CHECKED, "annotations.after_return")


@pytest.fixture
def beyond_annotations():
    "For a test of arguments that are taken although no annotation promises it."
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
