"What README.md tells a newcomer to type works as printed."

import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_five_lines_run_as_printed(capsys):
    (lines,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(lines.strip().splitlines()) == 5
    exec(compile(lines, "README.md", "exec"), {})
    assert "infom=" in capsys.readouterr().out


def test_links_and_pictures_lead_somewhere():
    targets = [t for t in re.findall(r"\]\(([^)#]+)", README) if not t.startswith("http")]
    assert targets
    for target in targets:
        assert (Path(__file__).parents[1] / target).exists(), target


def test_the_make_targets_it_names_exist():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    for target in set(re.findall(r"`?make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
