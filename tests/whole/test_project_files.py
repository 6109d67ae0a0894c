"No file names a folder of the machine on which it was made, and no notebook stores what only a terminal shows."

import json
import re
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
OF_A_MACHINE = re.compile(r"(?<![\w:/.~*}-])/(?:[\w.-]+/)+(?:site-packages|nbs|paper_tables)/")


def tracked():
    "The files that git keeps."
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    return [PROJECT / name for name in listed.split("\0") if name]


@pytest.mark.skipif(not (PROJECT / ".git").exists(), reason="not a checkout")
def test_no_folder_of_a_machine_is_committed():
    texts = [path for path in tracked() if path.suffix in (".ipynb", ".json", ".md", ".yaml")]
    found = {path.name: OF_A_MACHINE.search(path.read_text("utf-8")) for path in texts if path.exists()}
    assert len(found) > 100 and not {name: match[0] for name, match in found.items() if match}


def test_no_progress_bar_or_warning_is_stored():
    noisy = []
    for path in (PROJECT / "nbs").rglob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        outputs = [(cell["id"], output) for cell in cells for output in cell.get("outputs", ())]
        noisy += [(path.name, cell) for cell, output in outputs if output.get("name") == "stderr"]
    assert noisy == [], "outputs on the standard error are for no reader: take them out"


@pytest.mark.skipif(not (PROJECT / ".git").exists(), reason="not a checkout")
@pytest.mark.parametrize("folder, megabytes", [("paper_tables/results", 25), (".", 45)])
def test_a_checkout_is_light(folder, megabytes):
    sizes = {path: path.stat().st_size for path in tracked() if path.is_relative_to(PROJECT / folder) and path.exists()}
    assert 0 < sum(sizes.values()) <= megabytes * 1e6, sorted(sizes.items(), key=lambda item: -item[1])[:5]
