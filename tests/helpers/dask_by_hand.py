"A scheduler and workers of Dask as one starts them by hand, on this machine alone."

import os
import subprocess
import sys
import time
from pathlib import Path


def start_dask(folder: Path, workers: int = 1, **environment: str) -> tuple[list[subprocess.Popen], str]:
    "The scheduler's process, the one that starts its workers, and its address."
    address, quiet = folder / "scheduler.json", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    quiet["env"] = os.environ | environment
    dask, here = [sys.executable, "-m", "dask"], ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = subprocess.Popen([*dask, "scheduler", *here, "--port", "0", "--scheduler-file", address], **quiet)
    end = time.monotonic() + 60
    while not (address.exists() and (text := address.read_text()).rstrip().endswith("}")):
        assert scheduler.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    worker = [*dask, "worker", "--scheduler-file", address, *here, "--nthreads", "1", "--nworkers", str(workers)]
    return [scheduler, subprocess.Popen(worker, **quiet)], text.split('"address": "')[1].split('"')[0]
