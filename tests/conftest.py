"What all tests share: public metrics and models are imported with their annotations checked, see `annotations.py`."

import os
import shutil
import signal

import pytest
import torch
from jaxtyping import config, install_import_hook

SCORES = ("dci", "importance", "information_gaps", "interventions", "label_free", "mutual_information",
          "predictability", "reconstruction", "segmentation")  # fmt: skip
CHECKED = [f"disentangle_repro.scores.{name}" for name in SCORES]
CHECKED += [f"disentangle_repro.{name}" for name in ("scores.infomec", "asymmetry.slot_jacobian")]
CHECKED += [f"disentangle_repro.{name}" for name in ("models", "saved_models")]

install_import_hook(CHECKED, "annotations.after_return")

# In the background of a script signals may be ignored, and tests that send them would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Files that take longest, first: handed out last (xdist gives whole files), they would leave a core idle at the end.
LONGEST = ("test_killed", "test_report", "test_commands", "test_extensions", "test_wheel",
           "test_minutes", "test_models_learn", "test_cost", "test_protocols", "test_command", "test_every_step",
           "test_precision", "test_deadline", "test_setup_tables", "test_hdf5", "test_recorded_steps", "test_scores",
           "test_study", "test_check_gpu", "test_together", "test_readme", "test_models", "test_image_size",
           "test_engine")  # fmt: skip


def pytest_addoption(parser):
    parser.addoption("--whole", action="store_true", help="also what takes long, and all faults on whole tables")


def pytest_configure(config):
    config.addinivalue_line("markers", "whole: takes long and others come close: only with --whole (`make test-all`)")
    config.addinivalue_line("markers", "gpu: needs a GPU, where `make check-gpu` runs it; skipped without one")


def pytest_collection_modifyitems(config, items):
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
    if not config.getoption("--whole"):
        for item in items:
            if item.get_closest_marker("whole"):
                item.add_marker(pytest.mark.skip(reason="takes long: `make test-all` runs it"))
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a GPU"))


@pytest.fixture
def beyond_annotations():
    "For a test of arguments that are taken although no annotation promises it."
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def chromium():
    "A browser, one for all tests of a process: Playwright can be started once in it."
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright axe-playwright-python")
    if not (program := os.environ.get("CHROMIUM") or shutil.which("chromium")):
        pytest.skip("no browser: apt-get install chromium, or CHROMIUM=/path/to/it")
    with sync_api.sync_playwright() as started:
        lean = ["--disable-dev-shm-usage", "--disable-gpu", "--disable-gpu-rasterization"]  # there is none to draw with
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox", *lean])
        yield browser
        browser.close()
