"A name that there is not: said at once, with what came and what there is, before anything is done."

import shlex
import subprocess
from pathlib import Path

import pytest

from disentangle_repro.command import main

ROOT = Path(__file__).parents[2]
UNKNOWN = {
    "PAPERS": ("qale", "Did you mean 'qlae'?"),
    "MODELS": ("beta-vae", "Did you mean 'beta_vae'?"),
    "DATASETS": ("Shapes3D", "Did you mean 'shapes3d'?"),
    "SCALE": ("smok", "Did you mean 'smoke'?"),
    "SOURCE": ("drawn", "'official'"),
    "PROTOCOL": ("letter", "'text'"),
}  # fmt: skip
NUMBER = "must be a whole number"
ASKED = [("tables", name, *of) for name, of in UNKNOWN.items()]
ASKED += [("plan", name, *of) for name, of in UNKNOWN.items()]
ASKED += [("tables", "ENGINE", engine, "must be 'local', ") for engine in ("slurm", "local:0", "tcp://nowhere")]
ASKED += [("tables", "SEEDS", "0", NUMBER), ("tables", "UPDATES", "many", NUMBER), ("tables", "UPDATES", "-5", NUMBER)]
ASKED += [("tables", "MINUTES", "0", ""), ("tables", "MINUTES", "many", "")]
ASKED += [("data", "DATASETS", "shapes4d", "shapes3d"), ("data", "ENGINE", "slurm", "tcp://")]
SAID = {("data", "DATASETS"): "name"}  # what an argument is called where not as the variable


def command_of(target: str, variable: str) -> list[str]:
    "What `make` would execute, without the program."
    make = ["make", "-n", target, variable]
    printed = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in printed.replace("\\\n", " ").splitlines() if f"disentangle-repro {target} " in line]
    return shlex.split(line.partition(";")[0])[1:]


@pytest.mark.parametrize(("target", "name", "given", "there_is"), ASKED)
def test_an_unknown_name_is_told(target, name, given, there_is, tally, tmp_path, monkeypatch, capsys):
    arguments = command_of(target, f"{name}={given}")
    assert given in arguments
    (tmp_path / "settings.ini").write_text("lib_name = disentangle_repro\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path / "data"))
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr().err
    assert ended.value.code == 2 and repr(given) in said and there_is in said
    assert SAID.get((target, name), name.lower()) in said.lower() and said.count("'clevr6'") < 2, "a list twice"
    assert [path.name for path in tmp_path.iterdir()] == ["settings.ini"], "something was done"
    tally(f"make {target} {name}={given}")
