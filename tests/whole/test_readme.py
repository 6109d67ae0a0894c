"What README.md tells a newcomer to type works as printed."

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_six_lines_run_as_printed(capsys):
    lines, _ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(lines.strip().splitlines()) == 6
    exec(compile(lines, "README.md", "exec"), {})
    assert all(0 <= float(score) <= 1 for score in capsys.readouterr().out.split()[-3:])


def test_the_extension_it_shows_makes_itself_known():
    _, lines = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    known = "from disentangle_repro.models import list_models; assert 'narrow' in list_models()"
    subprocess.run([sys.executable, "-c", f"{lines}\n{known}"], check=True)


def test_links_and_images_lead_somewhere():
    targets = [t for t in re.findall(r"\]\(([^)#]+)", README) if not t.startswith("http")]
    assert targets
    for target in targets:
        assert (Path(__file__).parents[2] / target).exists(), target


def test_the_make_targets_it_names_exist():
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    for target in set(re.findall(r"`?make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
