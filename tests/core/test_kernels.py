"Kernels that are forked end with whoever asked for them, and the table does without where the server has died."

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from disentangle_repro.core import kernels
from disentangle_repro.core.kernels import forked_kernels, start_server

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forked on Linux only")
OWNER = """
import asyncio, os, time
from disentangle_repro.core.kernels import kernel_manager, start_server
server = start_server([])
manager = kernel_manager(server)(kernel_name="python3")
asyncio.run(manager.start_kernel(extra_arguments=["--log-level=ERROR"]))
print(server.process.pid, manager.provisioner.pid, flush=True)
time.sleep(600)
"""


def test_server_and_kernel_end_when_their_owner_is_killed():
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        family = [psutil.Process(int(pid)) for pid in owner.stdout.readline().split()]
        assert len(family) == 2 and family[1].ppid() == family[0].pid
        owner.kill()
        assert not psutil.wait_procs(family, timeout=60)[1]


def test_a_server_ends_with_its_owner_though_its_imports_are_not_done(tmp_path, monkeypatch):
    (tmp_path / "endless.py").write_text(f"import time; open({str(tmp_path / 'begun')!r}, 'w'); time.sleep(600)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = start_server(["endless"])
    while not (tmp_path / "begun").exists():
        assert server.process.poll() is None
        time.sleep(0.05)
    server.socket.close()
    assert server.process.wait(20) == 0


def test_a_kernel_asked_for_last_does_not_outlive_its_owner():
    "The server reads the question when nobody waits for the answer any more."
    server, question = start_server([]), (["--log-level=ERROR"], dict(os.environ), os.getcwd())
    first = server.fork(*question)  # by then the imports are done
    server.process.send_signal(signal.SIGSTOP)
    ours, theirs = socket.socketpair()
    with theirs:
        message = dict(zip(("arguments", "environment", "folder"), question, strict=True))
        socket.send_fds(server.socket, [json.dumps(message).encode()], [theirs.fileno()])
    server.socket.close()
    server.process.send_signal(signal.SIGCONT)
    server.process.wait(60)
    assert first.wait(60) == 0 and select.select([ours], [], [], 60)[0]  # the end that only the kernel holds is closed
    ours.close()


@pytest.mark.whole
@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="sessions share processors like everyone")
def test_a_kernel_is_as_nice_as_its_command_whatever_its_session():
    server = start_server([])
    psutil.Process(server.process.pid).nice(7)
    kernel = server.fork(["--log-level=ERROR"], dict(os.environ), os.getcwd())
    group, deadline = Path(f"/proc/{kernel.pid}/autogroup"), time.monotonic() + 60
    while not group.read_text().endswith("nice 7\n"):
        assert time.monotonic() < deadline, f"the kernel's session stays at {group.read_text()}"
        time.sleep(0.05)
    server.socket.close()
    assert kernel.wait(20) == 0


def test_what_is_asked_of_a_server_that_has_died_is_an_os_error():
    server = start_server([])
    server.process.kill()
    server.process.wait()
    with pytest.raises(OSError):
        server.fork(["-f", "nowhere.json"], dict(os.environ), os.getcwd())
    server.socket.close()


def test_a_machine_with_a_gpu_forks_nothing(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(kernels, "start_server", lambda modules: pytest.fail("a server was started"))
    with forked_kernels():
        assert kernels.current_server() is None


def test_kernels_that_are_not_forked_meet_at_no_port():
    "Jupyter looks for a free port and the kernel binds it later: if two start together, one may find it taken."
    one, two = (kernels.how_kernels_start()["kernel_manager_class"](kernel_name="python3") for _ in range(2))
    assert one.transport == two.transport == "ipc" and one.ip != two.ip
