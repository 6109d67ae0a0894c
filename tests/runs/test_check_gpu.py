"`make check-gpu`: its rehearsal without a GPU, and what it says where there is none."

import json

import pytest
import torch

from disentangle_repro.command import main
from disentangle_repro.core.files import project_root


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_one_line_says_that_nothing_was_checked(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["check-gpu"])
    assert ended.value.code == 2 and "nothing was checked" in capsys.readouterr().err.splitlines()[-1]


def test_its_rehearsal_times_updates_and_leaves_whole_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path))
    status, printed = main(["check-gpu", "--rehearse", "--minutes", "20"]), capsys.readouterr().out
    assert status == 0, printed
    assert "TFLOP/s in bf16" in printed and "GB/s" in printed and printed.count("not recorded") >= 2
    assert "All works: the tests, 4 timed updates and 2 short runs." in printed
    folders = sorted(path.parent for path in (project_root() / "build/check-gpu/runs").glob("*/run.json"))
    assert len(folders) == 2
    for folder in folders:
        record = json.loads((folder / "run.json").read_text())
        assert record["processor_seconds"] > 0 and (folder / "curve.csv").read_text().splitlines()[-1].startswith("20,")
