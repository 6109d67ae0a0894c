"What the book lists by hand is what there is; needs none of what builds it."

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

NBS = Path(__file__).parents[2] / "nbs"
BOOK = NBS / "_book"
API = sorted((BOOK / "api").glob("*.md"))


def test_every_page_of_the_reference_is_listed():
    listed = re.findall(r"^api/(\w+)$", (BOOK / "api.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [page.stem for page in API] and len(API) > 9


@pytest.mark.parametrize("page", API, ids=lambda page: page.stem)
def test_a_page_of_the_reference_is_of_a_module(page):
    assert [import_module(name) for name in re.findall(r"automodule:: ([\w.]+)", page.read_text())]


def test_every_chapter_without_a_room_is_listed():
    (modules,) = re.findall(r"^MODULES = (\[.*\])$", (BOOK / "chapters.py").read_text(), re.MULTILINE)
    assert sorted([*json.loads(modules), "index"]) == sorted(path.stem for path in NBS.glob("*.ipynb"))
