"""A part of the first hour of a GPU: what it has to measure and to train, within some minutes, without a network.

Run it in the checkout's root. It needs no more than Python to start; what else is missing it unpacks from a folder of
wheels. The same command goes on where an earlier one ended. See README.md beside this file.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

import carry

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = Path.cwd() / "build" / "gpu"  # what is no result: unpacked wheels, caches, logs
SITE = WORK / "site"
AUTOENCODERS = ("beta_vae", "beta_tcvae", "bioae", "vqvae")
TABLE_1 = ("ae", "qlae", *AUTOENCODERS, "infowgan_gp", "qlinfowgan_gp")
PARTS = {  # models, data sets, seeds: requests for Table 1 of qlae, one after the other
    1: [(("ae", "qlae"), ("shapes3d",), 1)],
    2: [(("ae", "qlae"), ("shapes3d",), 3)],
    3: [(("ae", "qlae", *AUTOENCODERS), ("shapes3d",), 3)],
    4: [(TABLE_1, ("shapes3d",), 3), (TABLE_1, ("mpi3d",), 3), (TABLE_1, ("falcor3d", "isaac3d"), 3)],
}
AT_LEAST = ("torch", "papermill", "ipykernel", "h5py", "seaborn", "disentangle_repro.tables.make")  # to train
PACKING = 30  # seconds at the end


def listed(name):
    """The distributions that a file names, one per line."""
    lines = (line.partition("#")[0].strip() for line in (HERE / name).read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def is_installed(name):
    try:
        return bool(distribution(name))
    except PackageNotFoundError:
        return False


def unpack(wheels):
    """Unpack each wheel of a folder whose distribution is not installed; their names."""
    unpacked = []
    for wheel in sorted(wheels.glob("*.whl")):
        name = wheel.name.partition("-")[0]
        if not is_installed(name) and not any(SITE.glob(f"{name}-*.dist-info")):
            with ZipFile(wheel) as archive:
                archive.extractall(SITE)
            unpacked.append(name)
    return unpacked


def print_missing():
    """Say which distributions are to be brought."""
    for name in ("wheels.txt", "wheels_large.txt"):
        missing = [one for one in listed(name) if not is_installed(one)]
        print(f"missing, of {name}: {' '.join(missing) or 'none'}")
    if not is_installed("torch"):
        print("missing, and not among the wheels: torch")


def surroundings(device):
    """The environment of what is started: where modules, data and caches are; without a GPU where that is asked for."""
    folders = {"MPLCONFIGDIR": "matplotlib", "IPYTHONDIR": "ipython", "JUPYTER_DATA_DIR": "jupyter",
               "JUPYTER_RUNTIME_DIR": "jupyter/runtime", "TORCHINDUCTOR_CACHE_DIR": "inductor",
               "TRITON_CACHE_DIR": "triton"}  # fmt: skip
    modules = [ROOT, ROOT / "benchmarks", HERE, *([SITE] if SITE.exists() else [])]
    before = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    found = {**os.environ, **{name: str(WORK / folder) for name, folder in folders.items()}}
    found["PYTHONPATH"] = os.pathsep.join([*map(str, modules), *before])
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found | ({"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {})


def readable(text):
    """Without the earlier states of progress bars."""
    return "\n".join(line.rsplit("\r", 1)[-1].rstrip() for line in text.replace("\r\n", "\n").split("\n"))


def stop(process):
    """End a process that was started here, and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Hour:
    """Starts the commands of a part, each with a log and no longer than there is time."""

    def __init__(self, minutes, device):
        self.start = time.monotonic()
        self.deadline = self.start + 60 * minutes - min(PACKING, 10 * minutes)
        self.environment = surroundings(device)

    def left(self):
        return self.deadline - time.monotonic()

    def said(self, text):
        print(f"[{time.monotonic() - self.start:4.0f} s] {text}", flush=True)

    def started(self, name, arguments, **environment):
        with (WORK / f"{name}.log").open("w") as log:
            how = {"stdout": log, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL, "start_new_session": True}
            return subprocess.Popen([sys.executable, *map(str, arguments)], env=self.environment | environment, **how)

    def log(self, name, lines):
        """Shorten a log to what a terminal would show in the end; its last lines, blank ones left out."""
        path = WORK / f"{name}.log"
        path.write_text(text := readable(path.read_text(encoding="utf-8", errors="replace")), encoding="utf-8")
        return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])

    def run(self, name, arguments, seconds, lines=12, **environment):
        """The exit status of a command, nothing where it had to be stopped; its last lines are printed."""
        begun, process = time.monotonic(), self.started(name, arguments, **environment)
        try:
            status = process.wait(max(1, seconds))
        except subprocess.TimeoutExpired:
            stop(process)
            status = None
        ended = "stopped: no more time" if status is None else f"exit status {status}"
        self.said(f"{name}: {time.monotonic() - begun:.0f} s, {ended}\n{self.log(name, lines)}")
        return status


def command(module, *arguments):
    """Arguments of Python for a command of the package, which need not be installed."""
    return ["-c", f"import sys; from disentangle_repro.{module} import main; sys.exit(main())", *arguments]


def check(hour):
    """Whether what training needs can be imported; the environment, as records have it, is printed."""
    code = f"import {', '.join(AT_LEAST)}\nfrom disentangle_repro.core.device import pick_device\n"
    code += "from disentangle_repro.train.store import environment\nprint(environment(pick_device()))"
    return hour.run("check", ["-c", code], hour.left(), 3) == 0


def draw(hour, datasets, tiny):
    """Begin to draw data sets, on all cores but two: a GPU has better things to do."""
    few = ["--n", 400] if tiny else []
    cores = max(1, len(os.sched_getaffinity(0)) - 2)
    how = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return hour.started("draw", command("data.load", *datasets, "--workers", cores, *few), **how)


def gpu_tests(hour, seconds):
    files = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if '"needs a GPU' in path.read_text("utf-8")]
    how = ["-q", "-rs", "--disable-warnings", "-p", "only_gpu", "-p", "no:cacheprovider"]
    how += ["--rootdir", ROOT, "-c", ROOT / "pyproject.toml"]
    return hour.run("tests", ["-m", "pytest", *how, *files], seconds, 20)


def steps(hour, seconds, tiny, compiled):
    """Measure steps, beginning anew after a crash, which is in the file by then."""
    until, more = time.monotonic() + seconds, [*(["--tiny"] if tiny else []), *(["--compile"] if compiled else [])]
    status = 1
    while status not in (0, None) and time.monotonic() < until:
        left = until - time.monotonic()
        given = ["--file", WORK / ("steps_tiny.jsonl" if tiny else "steps.jsonl"), "--minutes", 0.8 * left / 60]
        status = hour.run("steps", [HERE / "steps.py", *given, *more], left, 60)
    return status


def tables(hour, models, datasets, seeds, tiny, more):
    """Do runs of Table 1 until there is no more time."""
    if hour.left() < 60:
        hour.said(f"tables of {' '.join(datasets)}: less than a minute is left")
        return 0
    how = ["--papers", "qlae", "--models", *models, "--datasets", *datasets, "--scale", "smoke" if tiny else "short"]
    how += ["--seeds", 1 if tiny else seeds, "--minutes", int(hour.left() / 60), *more]
    return hour.run(f"tables-{'-'.join(datasets)}", command("tables.make", *how), hour.left() + PACKING / 2, 4)


def results():
    """A line for each finished run here."""
    lines = []
    for path in sorted((Path.cwd() / "paper_tables" / "runs").glob("*/run.json")):
        with suppress(ValueError, KeyError):
            record = json.loads(path.read_text(encoding="utf-8"))
            scores = "  ".join(f"{name} {value:.3f}" for name, value in record["scores"].items() if value is not None)
            device = record["environment"]["device"]
            lines.append(f"{record['id']}  {scores}  {record['seconds']:.0f} s of training on {device}")
    return lines


def parser():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--part", type=int, choices=PARTS)
    options.add_argument("--out", type=Path, help="where to write what outlives the machine")
    options.add_argument("--from", dest="before", type=Path, help="the `--out` of an earlier part, on a fresh machine")
    options.add_argument("--wheels", type=Path, help="a folder of wheels")
    options.add_argument("--minutes", type=float, default=9.0, help="end within so many")
    options.add_argument("--device", choices=("auto", "cpu"), default="auto")
    options.add_argument("--compile", action="store_true", help="part 1: measure compiled networks too")
    options.add_argument("--tiny", action="store_true", help="scale smoke and few images, to try everything")
    options.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="as in `make tables SET=`")
    options.add_argument("--files", type=int, default=8, help="in `--out`, at most")
    options.add_argument("--mebibytes", type=int, default=16, help="of each of these files, at most")
    options.add_argument("--check", action="store_true", help="say what is missing here, and do nothing")
    return options


def main():
    options = parser()
    given = options.parse_args()
    if given.check:
        print_missing()
        return 0
    if not given.part or not given.out:
        options.error("--part and --out are needed, or --check.")
    if not (Path.cwd() / "settings.ini").exists():
        options.error("run it in the checkout's root.")
    WORK.mkdir(parents=True, exist_ok=True)
    unpacked = unpack(given.wheels) if given.wheels else []
    hour, failed = Hour(given.minutes, given.device), []
    hour.said(f"part {given.part}; unpacked {len(unpacked)} wheels")
    if given.before:
        hour.said(f"taken: {len(carry.take(given.before, Path.cwd()))} files")
    if not check(hour):
        print_missing()
        return 1

    def pack():
        room = ["--files", given.files, "--mebibytes", given.mebibytes]
        return hour.run("pack", [HERE / "carry.py", "pack", given.out.resolve(), *room], 120)

    requests = PARTS[given.part]
    datasets = dict.fromkeys(name for _, names, _ in requests for name in names)
    drawing = draw(hour, datasets, given.tiny)
    try:
        if given.part == 1:
            total = hour.left()
            failed += ["tests"] * (gpu_tests(hour, total / 4) not in (0, None))
            failed += ["steps"] * (steps(hour, total / 3, given.tiny, given.compile) not in (0, None))
            pack()
        more = ["--set", *given.set] if given.set else []
        for request in requests:
            failed += ["tables"] * (tables(hour, *request, given.tiny, more) not in (0, None))
    finally:
        hour.said(f"drawing of {', '.join(datasets)}: exit status {drawing.poll()}\n{hour.log('draw', 3)}")
        stop(drawing)
        pack()
    print("\n".join(results()))
    hour.said(f"done; failed: {', '.join(failed) or 'nothing'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
