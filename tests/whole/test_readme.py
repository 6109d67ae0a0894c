"What README.md tells a newcomer to type works as printed."

import json
import re
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

SIX_LINES, IN_A_LOOP, PRETRAINED, TRAINED, EXTENSION = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_six_lines_and_what_goes_on_from_them_run_as_printed(capsys, monkeypatch, tmp_path):
    assert len(SIX_LINES.strip().splitlines()) == 6
    names = {}
    exec(compile(SIX_LINES, "README.md", "exec"), names)
    printed = [float(score) for score in capsys.readouterr().out.split()]
    exec(compile(IN_A_LOOP, "README.md", "exec"), names)
    assert [score.item() for score in names["scores"].values()] == printed
    assert all(0 <= score <= 1 for score in printed)
    exec(compile(PRETRAINED, "README.md", "exec"), names)
    assert names["scores"].infom > max(printed), "a trained QLAE is no more modular than mean colours"
    monkeypatch.chdir(tmp_path)
    assert len(TRAINED.strip().splitlines()) == 3
    exec(compile(TRAINED.replace("updates=5_000", "updates=1"), "README.md", "exec"), names)
    assert [point["updates"] for point in names["curve"]] == [1] and (tmp_path / "qlae.pt").exists()


def test_the_extension_it_shows_makes_itself_known():
    known = "from disentangle_repro.models import list_models; assert 'narrow' in list_models()"
    subprocess.run([sys.executable, "-c", f"{EXTENSION}\n{known}"], check=True)


def test_links_and_images_lead_somewhere():
    targets = [t for t in re.findall(r"\]\(([^)#]+)", README) if not t.startswith("http")]
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target


def test_the_picture_is_the_studys():
    chapter = json.loads((ROOT / "nbs/study/02_results.ipynb").read_text())
    outputs = [output.get("data", {}) for cell in chapter["cells"] for output in cell.get("outputs", [])]
    drawn = {b64decode("".join(output.get("image/png", ""))) for output in outputs}
    picture = re.search(r"!\[.*?\]\((.*?)\)", README)[1]
    assert (ROOT / picture).read_bytes() in drawn


def test_the_make_targets_it_names_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`?make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
