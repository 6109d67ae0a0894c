"""A book of five chapters: directives, folded code, formulas, figures, comments of parameters, links; and in a browser.

Needs Sphinx, which `make test` does not install: skipped there, and run by `make test-all`.
"""

import html
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

for needed in ("sphinx", "myst_nb", "furo"):
    pytest.importorskip(needed, reason="pip install '.[docs]', as `make docs` does")

PROJECT = Path(__file__).parents[2]
BOOK = PROJECT / "nbs" / "_book"
CHAPTERS = ("qlae/01_latent_quantization", "nets/00_attention", "scores/06_segmentation")
COMPARED = ("qlae/07_paper_against_code", "tripod/08_paper_against_code")
LINKS = runpy.run_path(str(BOOK / "links.py"))
broken = LINKS["broken"]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    "Built from these chapters, two of one kind, their folders' pages, a front page and one page of the reference."
    source, made = tmp_path_factory.mktemp("nbs"), tmp_path_factory.mktemp("book") / "html"
    for name in (*CHAPTERS, *COMPARED, *{chapter.split("/")[0] + "/index" for chapter in CHAPTERS + COMPARED}, "index"):
        (source / name).parent.mkdir(exist_ok=True)
        shutil.copy(PROJECT / "nbs" / f"{name}.ipynb", (source / name).parent)
    (source / "_book" / "api").mkdir(parents=True)
    shutil.copy(BOOK / "api" / "metrics.md", source / "_book" / "api")
    shutil.copy(BOOK / "routes.md", source / "_book")
    shutil.copytree(PROJECT / "nbs" / "images", source / "images")
    command = [sys.executable, "-m", "sphinx", "-q", "-c", BOOK, "-d", made / ".doctrees", source, made]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    # what is not there cannot be referred to; nothing else is amiss
    absent = r"\[(myst\.xref_missing|toc\.not_readable|toc\.not_included|ref\.doc)\]|(unknown|nonexisting) document"
    assert not [line for line in done.stderr.splitlines() if "WARNING" in line and not re.search(absent, line)]
    return made


def text(page):
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_directives_are_obeyed_and_not_shown(book, chapter):
    said = text(book / f"{chapter}.html")
    assert "tag_exported" in said and not re.search(r"#\s?\|\s*(export|hide|default_exp|echo)", said)


def test_the_front_page_offers_three_routes_and_a_chapter_says_how_long_it_takes(book):
    for route in ("An hour", "A paper in full", "The laboratory"):
        assert f"<strong>{route}.</strong>" in text(book / "index.html")
    assert all(re.search(r"<em>\d+ minutes to read", text(book / f"{chapter}.html")) for chapter in CHAPTERS)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_formula_is_one_and_no_prose_is(book, chapter):
    said = text(book / f"{chapter}.html")
    inline = [html.unescape(found) for found in re.findall(r'class="math[^"]*">\\\((.*?)\\\)<', said, re.DOTALL)]
    assert inline and "\\[" in said
    named = r"\\(mathrm|text|operatorname)\{[^}]*\}"
    for formula in inline:
        assert len(re.findall(r"(?<![\\{a-zA-Z])[a-zA-Z]{3,}", re.sub(named, "", formula))) < 3, formula
    rest = re.sub(r"<(pre|script|code|style)\b.*?</\1>|<(div|span) class=\"math.*?</\2>", "", said, flags=re.DOTALL)
    assert "$" not in re.sub(r"<[^>]+>", "", rest)


def cells(page):
    "Tags, code and the rest of each cell of code on a page."
    return re.findall(
        r'<div class="cell((?: tag_[\w-]+)*) docutils container">\s*<(?:div|details).*?<pre>(.*?)</pre>(.*?)'
        r'(?=<div class="cell |<section|</section)', text(page), re.DOTALL)  # fmt: skip


def plain(code):
    return html.unescape(re.sub(r"<[^>]+>", "", code)).strip()


def ends_in_assert(code):
    return code.splitlines()[-1].startswith("assert ")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_checks_and_the_code_of_figures_are_folded_and_outputs_and_exports_are_not(book, chapter):
    found = cells(book / f"{chapter}.html")
    folded = {plain(code): rest for tags, code, rest in found if "tag_hide-input" in tags}
    shown = {plain(code): (tags, rest) for tags, code, rest in found if "tag_hide-input" not in tags}
    assert any(ends_in_assert(code) for code in folded) and any("exported" in tags for tags, _ in shown.values())
    assert not [code for code, (tags, _) in shown.items() if ends_in_assert(code) and "exported" not in tags]
    assert not [code for code, (_, rest) in shown.items() if "<img" in rest]
    for code, rest in folded.items():
        said = "the code of the figure" if "<img" in rest else "the check"
        assert f"Show {said}</p>" in text(book / f"{chapter}.html"), code


def test_titles_tell_chapters_of_one_kind_apart(book):
    titles = [re.search(r"<title>(.*?) - ", text(book / f"{chapter}.html"))[1] for chapter in COMPARED]
    assert titles == ["QLAE: paper against code", "Tripod: paper against code"]
    notebooks = [json.loads(path.read_text()) for path in (PROJECT / "nbs").glob("*/*_against_code.ipynb")]
    assert len({notebook["cells"][0]["source"][0] for notebook in notebooks}) == len(notebooks) == 5
    index = text(book / "searchindex.js")
    assert all(title in index and title in text(book / "index.html") for title in titles)


def test_figures_are_described_in_words(book):
    alts = [alt for chapter in CHAPTERS for alt in re.findall(r'<img alt="([^"]*)"', text(book / f"{chapter}.html"))]
    assert alts and all(len(alt.split()) > 5 for alt in alts)


def test_a_parameter_has_its_comment_and_its_type(book):
    said = html.unescape(re.sub(r"<[^>]+>", "", text(book / "_book/api/metrics.html")))
    assert "do the latents take few values, recognised by equality?" in said
    assert "Int[np.ndarray | Tensor, 'samples sources']" in said
    assert "Chapter: Segmentation" in said


def test_folders_are_read_in_the_order_of_the_front_page(book):
    listed = re.findall(r'class="reference internal" href="(\w+)/index.html"', text(book / "index.html"))
    assert list(dict.fromkeys(listed)) == ["qlae", "tripod", "nets", "scores"], "papers first, then what is not linked"


def test_links_lead_somewhere_and_a_broken_one_is_found(book, tmp_path):
    found, links = broken(book)
    assert links > 100 and not [(page, link) for page, link in found if not re.search(r"\.ipynb(#|$)", link)]
    for wrong in ("nowhere.html", "index.html#nowhere"):
        (tmp_path / "index.html").write_text(f'<a href="{wrong}"><a href="https://example.org">')
        assert broken(tmp_path) == ([("index.html", wrong)], 1)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_headings_have_the_anchors_that_links_are_checked_against(book, chapter):
    "What tests/docs/test_contents.py takes for anchors, without Sphinx, are those of the book."
    ids = LINKS["Page"](book / f"{chapter}.html").ids
    assert len(found := LINKS["anchors"](PROJECT / "nbs" / f"{chapter}.ipynb")) > 3 and found <= ids


@pytest.mark.parametrize("width", (390, 1280))
def test_in_a_browser_from_a_file(book, chromium, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    complaints = []
    page = chromium.new_page(viewport={"width": width, "height": 900})
    page.on("console", lambda said: said.type in ("error", "warning") and complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith("http") and complaints.append(asked.url))
    for name in ("index.html", "nets/00_attention.html", "_book/api/metrics.html"):
        page.goto((book / name).as_uri())
        page.evaluate("() => window.MathJax && MathJax.startup.promise")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is too wide"
        if width > 390:
            continue
        run = axe.Axe().run(page, options={"preload": False, "resultTypes": ["violations"]})
        found = [rule["id"] for rule in run.response["violations"] if rule["impact"] in ("serious", "critical")]
        assert not found, (name, found)
        if "attention" in name:
            assert page.locator("mjx-container svg").count() > 20 and not page.locator("[data-mjx-error]").count()
    page.goto((book / f"{CHAPTERS[-1]}.html").as_uri())
    place = page.locator("section section").last.get_attribute("id")
    page.goto((book / f"{CHAPTERS[-1]}.html").as_uri() + "#" + place)
    page.reload()
    seen = f"() => Math.abs(document.getElementById('{place}').getBoundingClientRect().top - 450) < 451"
    page.wait_for_function(f"() => MathJax.startup.promise.then({seen})", timeout=5_000)
    page.keyboard.press("/")
    page.keyboard.type("foreground")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a")
    found = page.locator("#search-results li", has=page.get_by_role("link", name="Segmentation", exact=True))
    assert "foreground" in found.locator("p.context").inner_text(timeout=5_000).lower()
    page.close()
    assert not complaints
