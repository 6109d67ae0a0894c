"A kernel is a process of this interpreter, at no port, as nice as the command that starts it, and ends with it."

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from disentangle_repro.lab.runs.kernels import kernel_manager
from disentangle_repro.lab.runs.runner import execute

OWNER = """
import asyncio, time
from disentangle_repro.lab.runs.kernels import kernel_manager
manager = kernel_manager()(kernel_name="python3")
asyncio.run(manager.start_kernel(extra_arguments=["--log-level=ERROR"]))
print(manager.provisioner.pid, flush=True)
time.sleep(600)
"""


def test_a_kernel_of_another_environment_is_not_taken(tmp_path, monkeypatch):
    "As where a module of a cluster puts its kernels in JUPYTER_PATH."
    nbformat = pytest.importorskip("nbformat")
    (spec := tmp_path / "kernels" / "python3").mkdir(parents=True)
    other = {"argv": ["/bin/false"], "display_name": "of another environment", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(other))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import sys; sys.executable")])
    book.metadata.kernelspec = {"name": "python3", "language": "python", "display_name": "python3"}
    nbformat.write(book, tmp_path / "book.ipynb")
    execute(str(tmp_path / "book.ipynb"), tmp_path / "done.ipynb")
    (output,) = nbformat.read(tmp_path / "done.ipynb", 4).cells[-1].outputs
    assert output["data"]["text/plain"] == repr(sys.executable)


def test_a_kernel_ends_when_its_owner_is_killed():
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        kernel = psutil.Process(int(owner.stdout.readline()))
        owner.kill()
        assert not psutil.wait_procs([kernel], timeout=60)[1]


@pytest.mark.whole
@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="sessions share processors like everyone")
def test_a_kernel_is_as_nice_as_its_command_whatever_its_session(monkeypatch):
    async def group() -> str:
        manager = kernel_manager()(kernel_name="python3")
        await manager.start_kernel(extra_arguments=["--log-level=ERROR"])
        text = Path(f"/proc/{manager.provisioner.pid}/autogroup").read_text()
        await manager.shutdown_kernel(now=True)
        return text

    monkeypatch.setattr(os, "nice", lambda by: 7)
    assert asyncio.run(group()).endswith("nice 7\n")


@pytest.mark.skipif(sys.platform == "win32", reason="has no sockets in the file system")
def test_two_kernels_meet_at_no_port():
    "Jupyter looks for a free port and the kernel binds it later: if two start together, one may find it taken."
    one, two = (kernel_manager()(kernel_name="python3") for _ in range(2))
    assert one.transport == two.transport == "ipc" and one.ip != two.ip
