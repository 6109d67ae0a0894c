"""The same table by three engines: one after another, by workers of Dask, and by workers that are killed over and over.

Prints how long each takes and how many records are equal to the last bit. At scale smoke; by hand:
`python benchmarks/bench_engines.py [PAPER] [SECONDS BETWEEN KILLS]`, by default qlae and 20.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from distributed import LocalCluster

ROOT = Path(__file__).parents[1]


def project(folder: Path) -> Path:
    "A project with a store of its own and everything else of this one."
    (folder / "paper_tables").mkdir(parents=True)
    shutil.copy(ROOT / "settings.ini", folder)
    for name in ("nbs", "disentangle_repro", "paper_tables/reported", "paper_tables/claims.yaml"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def workers() -> list[psutil.Process]:
    "The workers of a cluster: children of this process that were spawned by multiprocessing."
    children = [child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())]
    return [child for child in children if child.status() != psutil.STATUS_ZOMBIE]


def make_table(folder: Path, paper: str, engine: str, kill_every: float | None = None) -> tuple[float, int]:
    "Seconds that the table took, and how many workers were killed meanwhile."
    command = [Path(sys.executable).with_name("disentangle-repro"), "tables", "--papers", paper, "--scale", "smoke"]
    environment = {**os.environ, "DISENTANGLE_DATA": str(ROOT / "data")}
    start, kills, choice = time.perf_counter(), 0, random.Random(0)
    with open(folder / "log", "w") as log:
        how = {"cwd": folder, "env": environment, "stdout": log, "stderr": log}
        driver = subprocess.Popen([*command, "--engine", engine], **how)
        while driver.poll() is None:
            time.sleep(kill_every or 1)
            if kill_every and driver.poll() is None and (alive := workers()):
                os.kill(choice.choice(alive).pid, signal.SIGKILL)
                kills += 1
    assert driver.returncode == 0, (folder / "log").read_text()[-2_000:]
    return time.perf_counter() - start, kills


def results(folder: Path) -> dict[str, dict]:
    "What is the same in every record of a run, however it was made."
    records = [json.loads(path.read_text()) for path in (folder / "paper_tables" / "runs").glob("*/run.json")]
    varies = ("environment", "seconds", "processor_seconds", "digest")
    return {r["id"]: {name: r[name] for name in r if name not in varies} for r in records}


def main(paper: str = "qlae", kill_every: str = "20") -> None:
    with tempfile.TemporaryDirectory() as folder, LocalCluster(n_workers=2, threads_per_worker=1) as cluster:
        found, dask = {}, cluster.scheduler_address
        for name, engine, every in (("serial", "local", 0), ("dask", dask, 0), ("killed", dask, float(kill_every))):
            where = project(Path(folder) / name)
            seconds, kills = make_table(where, paper, engine, every)
            found[name] = results(where)
            equal = sum(found[name].get(run) == record for run, record in found["serial"].items())
            print(f"{name}: ENGINE={engine}, {seconds:.0f} s, {kills} workers killed; {equal} of {len(found['serial'])}"
                  " runs equal to the serial ones", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
