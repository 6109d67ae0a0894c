"""The report in a browser, opened from files: links, console, sorting, filters, keyboard, axe-core, phone, print, size.

By default a small report is made of a store with made-up scores.
`REPORT=paper_tables/report` tests one that is there, and `SHOTS=folder` has each kind of page photographed at both
widths, light and dark.
"""

import json
import os
import random
import re
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import expect
except ImportError:
    Axe = expect = None  # the fixture `chromium` then skips

REPORT = os.environ.get("REPORT")
SHOTS = os.environ.get("SHOTS")
WIDTHS, SCHEMES = (390, 1400), ("light", "dark")
# what the pages of a folder are
FOLDERS = {"tables": "table", "runs": "run"}
PATIENCE = 2_000  # ms for what a click sets going
FEW = 10  # pages of a kind that are opened of a report that is not small
KINDS = ("overview", "table", "run", "proofs", "differences", "explorer", "figures")
ALIKE = [pytest.param(kind, marks=pytest.mark.whole) for kind in ("proofs", "differences")]  # the script is tables'
SEEN_BY_AXE = [
    pytest.param(kind, width, scheme, marks=[pytest.mark.whole] if scheme == "dark" and kind not in KINDS[:2] else [])
    for kind in KINDS for width, scheme in zip(WIDTHS, SCHEMES, strict=True)
]  # fmt: skip


def kind_of(path):
    "What a page is, by its place in the site."
    parts = path.split("/")
    return FOLDERS.get(parts[0], parts[0]) if len(parts) > 1 else {"index.html": "overview"}.get(path, Path(path).stem)


class Parsed(HTMLParser):
    "Addresses and ids of a page."

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.fetched = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "poster", "xlink:href") and value and not value.startswith("data:"):
                self.links.append(value)
                if tag != "a":
                    self.fetched.append(value)


class Site:
    "A report on disk."

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.read = {}
        self.pages = sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*.html"))

    def parsed(self, page):
        if page not in self.read:
            self.read[page] = Parsed((self.folder / page).read_text(encoding="utf-8"))
        return self.read[page]

    def of_kind(self, kind, some=None):
        "Pages of a kind; of many, some by chance."
        pages = [page for page in self.pages if kind_of(page) == kind]
        return sorted(random.Random(0).sample(pages, some)) if some and len(pages) > some else pages


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    if REPORT:
        return Site(REPORT)
    from report_fixture import small_report

    return Site(small_report(tmp_path_factory.mktemp("small")))


@contextmanager
def opened(chromium, site, path, width=1400, scheme="light", height=900, **how):
    "A page of the site in a window; what it asked for and complained about is in `page.asked` and `page.complaints`."
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **how)
    page = context.new_page()
    page.asked, page.complaints = [], []  # of all pages that it goes to
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("requestfailed", lambda request: page.complaints.append(f"{request.failure}: {request.url}"))
    page.on("pageerror", lambda error: page.complaints.append(f"uncaught: {error}"))
    page.on("console", lambda said: said.type in ("error", "warning") and page.complaints.append(said.text))
    try:
        page.goto((site.folder / path).as_uri(), wait_until="load")
        yield page
    finally:
        context.close()


# what must hold of a page, a site


def broken_links(site):
    "Addresses that lead to no file or no id; (page, address)."
    broken = []
    for page in site.pages:
        for link in dict.fromkeys(site.parsed(page).links):
            address = urlsplit(link)
            if address.scheme:
                continue
            path = unquote(address.path)
            target = (site.folder / page).parent / path if path else site.folder / page
            inside = target.resolve()
            if path.startswith("/") or not inside.exists() or inside.is_dir():
                broken.append((page, link))
            elif address.fragment and inside.suffix == ".html" and inside.is_relative_to(site.folder):
                if unquote(address.fragment) not in site.parsed(inside.relative_to(site.folder).as_posix()).ids:
                    broken.append((page, link))
    return broken


def check_links(site):
    "Every address within the report leads somewhere, and nothing is fetched from elsewhere."
    assert broken_links(site) == []
    fetched = [(page, link) for page in site.pages for link in site.parsed(page).fetched if urlsplit(link).scheme]
    assert fetched == [], "fetched from elsewhere"
    doubled = {page: [i for i in set(ids) if ids.count(i) > 1] for page in site.pages if (ids := site.parsed(page).ids)}
    assert {page: ids for page, ids in doubled.items() if ids} == {}, "an id occurs twice"


def check_quiet(page):
    "No word on the console, no request that fails or leaves the machine."
    page.wait_for_timeout(20)
    left = "net::ERR_ABORTED: file:"  # what a page was about to show when it was left
    assert [words for words in page.complaints if not words.startswith(left)] == []
    assert [url for url in page.asked if urlsplit(url).scheme not in ("file", "data", "blob")] == []


ROWS = "table => [...table.tBodies[0].rows].filter(r => r.offsetParent !== null)"
COLUMN = f"(table, i) => ({ROWS})(table).map(r => r.cells[i].dataset.order ?? r.cells[i].textContent.trim())"


def is_sorted(values):
    "Whether values ascend: as numbers where all are numbers."
    numbers = [value for value in values if re.fullmatch(r"[-−]?\d+(\.\d+)?(e-?\d+)?", value)]
    if len(numbers) < len(values):
        return values == sorted(values, key=str.lower) or len(numbers) > 0 or not all(map(str.isascii, values))
    return [float(v.replace("−", "-")) for v in values] == sorted(float(v.replace("−", "-")) for v in values)


def headings(table):
    "The headings of single columns: where each is among all headings, and which column it heads."
    return table.evaluate("""table => [...table.tHead.querySelectorAll("th, td")]
        .map((cell, i) => [i, Number(cell.dataset.dtColumn ?? cell.cellIndex), cell.colSpan])
        .filter(([i, column, span]) => span === 1).map(([i, column]) => [i, column])""")


def sorter(table, place):
    "A heading, and what is clicked in it."
    heading = table.locator("thead").locator("th, td").nth(place)
    button = heading.locator("button, [role=button]")
    return heading, button.first if button.count() else heading


def check_sorting(page):
    "A click on a heading sorts by its column, a second one the other way round; the heading says which."
    page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true; })")
    tables = page.locator("table.sortable, table.lean")
    assert tables.count(), "there is no table to sort"
    for number in range(tables.count()):
        table = tables.nth(number)
        for place, column in headings(table):
            before = table.evaluate(COLUMN, column)
            if len(set(before)) < 2:
                continue
            heading, button = sorter(table, place)
            button.scroll_into_view_if_needed()
            button.click()
            expect(heading).to_have_attribute("aria-sort", "ascending", timeout=PATIENCE)
            up = table.evaluate(COLUMN, column)
            assert sorted(up) == sorted(before) and is_sorted(up), f"column {column} is not in order: {up[:9]}"
            button.click()
            expect(heading).to_have_attribute("aria-sort", "descending", timeout=PATIENCE)
            down = table.evaluate(COLUMN, column)
            assert down != up and sorted(down) == sorted(up), f"column {column} does not turn round"


def shown_rows(page):
    "Rows of the filtered tables that are to be seen, as their data and text."
    return page.evaluate(f"""() => [...document.querySelectorAll("table.sortable")].flatMap({ROWS})
        .filter(r => !r.querySelector(".dt-empty")).map(r => ({{...r.dataset,
            text: [...r.cells].map(c => c.textContent).join(" ").toLowerCase()}}))""")


def check_filters(page):
    "Each choice leaves the rows that fit it, all of them, and is kept in the address; so does the search."
    every = shown_rows(page)
    selects = page.locator("select[data-filter]")
    assert every and selects.count(), "there is nothing to filter"
    for number in range(selects.count()):
        select = selects.nth(number)
        name = select.get_attribute("data-filter")
        values = select.evaluate("s => [...s.options].map(o => o.value).filter(v => v)")
        assert {row.get(name) for row in every} & set(values), f"no row fits any choice of {name}"
        for value in values:
            select.select_option(value)
            assert shown_rows(page) == [row for row in every if row.get(name) == value], f"{name}={value}"
            assert f"{name}=" in page.url
        select.select_option("")
    assert shown_rows(page) == every
    select.select_option(value)
    page.reload()
    assert shown_rows(page) == [row for row in every if row.get(name) == value], "a choice is not kept"
    select.select_option("")
    word = max(re.findall(r"[a-z_]{3,}", every[-1]["text"]), key=len)
    page.locator("input[type=search]").first.fill(word)
    found = shown_rows(page)
    assert 0 < len(found) and all(word in row["text"] for row in found)
    assert len(found) == sum(word in row["text"] for row in every)


def check_focus(page):
    "The element that has the focus shows it."
    outline = page.evaluate("""() => { const look = getComputedStyle(document.activeElement);
        return [look.outlineStyle, parseFloat(look.outlineWidth), look.boxShadow]; }""")
    assert (outline[0] != "none" and outline[1] >= 2) or outline[2] != "none", f"the focus is not to be seen: {outline}"


def tab_to(page, wanted, limit=400):
    "Press Tab until the focus is on an element of that selector."
    for _ in range(limit):
        page.keyboard.press("Tab")
        if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            return
    raise AssertionError(f"{limit} presses of Tab do not reach {wanted}")


def check_keyboard(page):
    "With the keyboard alone: skip the navigation, choose, sort, scroll, and open a run."
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.matches('a.skip')"), "the first stop is not the skip link"
    check_focus(page)
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.matches('main')"), "the skip link does not lead to the content"
    if page.locator("select[data-filter]").count():
        tab_to(page, "select[data-filter]")
        check_focus(page)
    sorts = "thead th [role=button], thead th button, thead th[tabindex='0']"
    tab_to(page, sorts)
    check_focus(page)
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort=ascending]")).to_have_count(1, timeout=PATIENCE)


def check_keyboard_opens_a_run(page):
    tab_to(page, "td a[href*='runs/']", 2_000)
    check_focus(page)
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/**")
    assert page.locator("h1").count() == 1


def check_axe(page):
    "No violation that axe-core calls serious or critical."
    found = Axe().run(page).response["violations"]
    worse = {v["id"]: [node["html"][:160] for node in v["nodes"]][:3] for v in found
             if v["impact"] in ("serious", "critical")}  # fmt: skip
    assert worse == {}


def check_width(page):
    "The page is no wider than the window: what is wide scrolls by itself."
    wide = page.evaluate("""() => { const root = document.documentElement;
        if (root.scrollWidth <= innerWidth) return [];
        return [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1
            && !e.parentElement.closest(".scroll")).map(e => e.outerHTML.slice(0, 120)).slice(0, 5)
            .concat(root.scrollWidth + " of " + innerWidth); }""")
    assert wide == []


def weight(site, page):
    "Bytes of a page and of all that it loads."
    files = {(site.folder / page).parent / unquote(urlsplit(link).path) for link in site.parsed(page).fetched}
    return (site.folder / page).stat().st_size + sum(file.resolve().stat().st_size for file in files)


def check_overview(chromium, site):
    "The overview is small and is there at once."
    assert weight(site, "index.html") < 300_000, f"the overview weighs {weight(site, 'index.html'):,} bytes"
    with opened(chromium, site, "index.html") as page:
        # `wait_for_function` polls by evaluating a text, which these pages allow nobody
        paints = page.evaluate("""async () => { let paints = []
            while (!(paints = performance.getEntriesByType("paint")).length) await new Promise(requestAnimationFrame)
            return paints.map(p => p.startTime) }""")
        assert max(paints) < 1_000
        assert page.locator("main h1").is_visible() and page.locator("main table").first.is_visible()


def check_print(page):
    "On paper: tables but no controls, light, and nothing hidden that can be scrolled to on the screen."
    page.emulate_media(media="print", color_scheme="dark")
    hidden = page.evaluate("""() => [...document.querySelectorAll("main table")].filter(t => t.offsetParent === null
        && !t.closest("details:not([open])")).map(t => t.outerHTML.slice(0, 100))""")
    assert hidden == [], "tables are not printed"
    left = page.evaluate("""() => [...document.querySelectorAll("nav, .controls, .dt-search, .skip")]
        .filter(e => e.offsetParent !== null).map(e => e.outerHTML.slice(0, 100))""")
    assert left == [], "controls are printed"
    ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert min(map(int, re.findall(r"\d+", ground)[:3])) > 200, f"printed on {ground}"
    cut = page.evaluate("""() => [...document.querySelectorAll("main .scroll")].filter(e =>
        getComputedStyle(e).overflowX !== "visible").length""")
    assert cut == 0, "a region that scrolls is cut off on paper"


def check_smoke(page):
    """A number that leads to a run of scale smoke is marked, and the page says what the mark means.

    But for what is measured in full at every scale.
    """
    bare = page.evaluate("""() => [...document.querySelectorAll("td a[href*='-smoke-']")].filter(a =>
        !/-(mixture|iteration_times)-/.test(a.href) && /^[-−]?[0-9]/.test(a.textContent.trim())
        && !a.closest(".smoke") && !a.querySelector(".smoke"))
        .map(a => a.parentElement.outerHTML.slice(0, 160))""")
    assert bare == [], "numbers that mean nothing are not marked"
    if page.locator("main .smoke >> visible=true").count():
        assert re.search(r"mean(s)? nothing", page.locator("main").inner_text())


# the report


def test_every_kind_of_page_is_there(site):
    assert {kind_of(page) for page in site.pages} == set(KINDS)


def test_links_resolve(site):
    check_links(site)


@pytest.mark.parametrize("kind", KINDS)
def test_pages_open_quietly_and_fit_a_phone(chromium, site, kind):
    pages = site.of_kind(kind, FEW if REPORT and kind == "run" else None)
    with opened(chromium, site, pages[0], width=390) as page:
        for path in pages:
            page.goto((site.folder / path).as_uri(), wait_until="load")
            check_quiet(page)
            check_width(page)
            assert page.locator("h1").count() == 1 and page.title()
            check_smoke(page)


@pytest.mark.parametrize("kind", ["overview", "table", *ALIKE])
def test_tables_sort(chromium, site, kind):
    for path in site.of_kind(kind, 1):
        with opened(chromium, site, path) as page:
            check_sorting(page)


@pytest.mark.parametrize("kind", ["table", *ALIKE])
def test_tables_are_filtered(chromium, site, kind):
    a_choice = re.compile('<option value="[^"]')
    pages = [path for path in site.of_kind(kind) if a_choice.search((site.folder / path).read_text(encoding="utf-8"))]
    assert pages, "nowhere is there a choice"
    for path in random.Random(0).sample(pages, min(2, len(pages))):
        with opened(chromium, site, path) as page:
            check_filters(page)


def test_tables_are_filtered_by_what_their_rows_differ_in(site):
    seen = set()
    for path in site.of_kind("table"):
        text = (site.folder / path).read_text(encoding="utf-8")
        filters = set(re.findall(r'<select data-filter="(\w+)"', text))
        for name in ("scale", "source", "protocol"):
            values = set(re.findall(rf'<tr[^>]* data-{name}="([^"]*)"', text))
            assert (name in filters) == (len(values) > 1), (path, name, values)
        seen |= filters
    assert REPORT or seen == {"scale", "source", "protocol"}


def test_the_first_columns_of_a_table_stay(chromium, site):
    "Model, data set and scale are where they were when the metrics scroll; on a phone the first column has all three."
    path = "tables/qlae_1.html"
    for width, stays in ((900, 3), (400, 1)):
        with opened(chromium, site, path, width) as page:
            left = """() => [...document.querySelectorAll("table.sortable tbody tr:first-child > *")]
                .filter(c => c.offsetParent).map(c => Math.round(c.getBoundingClientRect().left))"""
            before = page.evaluate(left)
            page.evaluate("() => { document.querySelector('.scroll:has(table.sortable)').scrollLeft = 200; }")
            after = page.evaluate(left)
            assert after[:stays] == before[:stays]
            assert all(a < b for a, b in zip(after[stays:], before[stays:], strict=True))
            first = page.locator("table.sortable tbody tr:first-child th").inner_text()
            assert ("shapes3d" in first) == (width == 400)


def check_heads(page):
    "The heading of a column stands above its cells, or the cells say their heading themselves."
    off = page.evaluate("""() => [...document.querySelectorAll("main table")].flatMap(table => {
        const row = table.tBodies[0] && [...table.tBodies[0].rows].find(r => r.offsetParent);
        if (!row || !table.tHead || table.tHead.rows.length > 1 || table.closest("details:not([open])")) return [];
        const left = cell => cell.getBoundingClientRect().left;
        const in_grid = cell => getComputedStyle(cell).display === "table-cell";
        return [...table.tHead.rows[0].cells].map((head, i) => [head, row.cells[i]]).filter(([head, cell]) => cell
            && head.offsetParent && cell.offsetParent && in_grid(cell) && Math.abs(left(head) - left(cell)) > 1)
            .map(([head]) => head.textContent); })""")
    assert off == [], "headings beside their columns"


@pytest.mark.parametrize("kind", ["overview", "table", "proofs", "differences"])
def test_headings_stand_above_their_columns_on_a_phone(chromium, site, kind):
    with opened(chromium, site, site.of_kind(kind)[0], 400) as page:
        check_heads(page)
        bare = page.evaluate("""() => [...document.querySelectorAll("table.prose tbody td")].filter(c => c.offsetParent
            && getComputedStyle(c).display !== "table-cell" && c.dataset.heading === undefined).length""")
        assert bare == 0, "a cell of a card has no heading"


def test_the_first_screen_names_what_reproduced_of_each_paper(chromium, site):
    papers = ("qlae-1", "tripod-2", "factorqvae-4", "asymmetry-1", "psa-3")
    with opened(chromium, site, "index.html", 1280) as page:
        for paper in papers:
            box = page.locator(".forest svg text", has_text=re.compile(rf"^{paper}: .+: .+")).bounding_box()
            assert box["y"] + box["height"] < 900, paper
        figure = page.locator(".forest svg").bounding_box()
        assert figure["y"] + figure["height"] < 920


def test_a_number_leads_to_its_run(chromium, site):
    number = re.compile(r'<td[^>]*>(?:<span[^>]*>)?<a href="\.\./runs/[^>]*>(?:<span[^>]*>)?[-−]?\d')
    pages = [path for path in site.of_kind("table") if number.search((site.folder / path).read_text(encoding="utf-8"))]
    for path in {"tables/qlae_1.html", *random.Random(0).sample(pages, 2)}:
        with opened(chromium, site, path) as page:
            numbers = page.locator("td a[href*='runs/']").filter(has_text=re.compile(r"^\s*[-−]?\d"))
            numbers.first.click()
            page.wait_for_url("**/runs/**/index.html*")
            assert page.locator("h1").count() == 1
            assert page.locator("a[href='run.json']").count(), "the page of a run does not lead to its record"
            check_quiet(page)


NUMBER = re.compile(r'data-order="([^"]+)">(?:<span[^>]*>)?<a href="\.\./runs/([^/"]+)/index\.html">')
SEEDS = re.compile(r'<td class="number" data-order="(\d+)">\d')


def numbers_of_one_run(text):
    "Numbers of ours in rows that one training stands behind, each with the run that it leads to."
    rows = [row for row in text.split("<tr")[1:] if NUMBER.search(row) and SEEDS.findall(row)[-1:] == ["1"]]
    return [found for row in rows for found in NUMBER.findall(row) if "-iteration_times-" not in found[1]]


def test_a_number_is_a_score_of_the_run_that_it_leads_to(site):
    texts = [(site.folder / path).read_text(encoding="utf-8") for path in site.of_kind("table")]
    found = [number for text in texts for number in numbers_of_one_run(text)]
    assert REPORT or len(found) > 100  # a report of a large scale may have several seeds everywhere
    for number, run in found:
        scores = json.loads((site.folder / "runs" / run / "run.json").read_text())["scores"].values()
        assert any(float(number) == float(f"{score:.6g}") for score in scores), f"{number} is no score of {run}"


@pytest.mark.parametrize("kind", ["overview", "table", "proofs", "differences"])
def test_the_keyboard_is_enough(chromium, site, kind):
    with_runs = [p for p in site.of_kind(kind) if any("runs/" in link for link in site.parsed(p).links)]
    path = (with_runs or site.of_kind(kind))[0]
    with opened(chromium, site, path) as page:
        check_keyboard(page)
        if kind == "table":
            check_keyboard_opens_a_run(page)


@pytest.mark.parametrize(("kind", "width", "scheme"), SEEN_BY_AXE)
def test_nothing_serious_for_axe(chromium, site, kind, width, scheme):
    path = max(site.of_kind(kind, 5), key=lambda page: (site.folder / page).stat().st_size)
    with opened(chromium, site, path, width, scheme) as page:
        check_width(page)
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{kind}-{width}-{scheme}.png", full_page=True)
        if not REPORT:  # rows are alike, and axe takes its time over each
            page.evaluate("() => document.querySelectorAll('tbody tr:nth-child(n+25)').forEach(row => row.remove())")
        check_axe(page)


def test_the_overview_is_small_and_there_at_once(chromium, site):
    check_overview(chromium, site)


@pytest.mark.parametrize("kind", KINDS)
def test_pages_can_be_printed(chromium, site, kind):
    with opened(chromium, site, site.of_kind(kind)[0], scheme="dark") as page:
        check_print(page)


@pytest.mark.parametrize("kind", ["table", "proofs", "differences"])
def test_nothing_is_missing_without_scripts(chromium, site, kind):
    path = site.of_kind(kind)[0]
    with opened(chromium, site, path) as page:
        rows = len(shown_rows(page))
    with opened(chromium, site, path, java_script_enabled=False) as page:
        assert page.locator("table.sortable tbody tr").count() == rows > 0
