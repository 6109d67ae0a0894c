"Kernels that are forked end with whoever asked for them, and the table does without where the server has died."

import os
import subprocess
import sys

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
        assert kernels.how_kernels_start() == {}
