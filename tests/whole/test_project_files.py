"No file of the project names a folder of the machine on which it was made."

import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.mark.skipif(not (PROJECT / ".git").exists(), reason="not a checkout")
def test_no_path_of_this_machine_is_committed():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    texts = [PROJECT / name for name in listed.split("\0") if name.endswith((".ipynb", ".json", ".md", ".yaml"))]
    wrong = f"{PROJECT}/"
    found = [path.name for path in texts if path.exists() and wrong in path.read_text("utf-8")]
    assert len(texts) > 100 and not found
