"The explorer in a browser, opened from files: sliders and slots by the keyboard, their text, axe-core, a phone."

import json
import shutil
from contextlib import contextmanager
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from test_report import (
    Site,
    broken_links,
    check_axe,
    check_focus,
    check_quiet,
    check_width,
    opened,
    tab_to,
)  # fmt: skip

from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.plan.specs import run_spec
from disentangle_repro.lab.report.explorer import write_explorer
from disentangle_repro.lab.report.page import write_assets, write_page
from disentangle_repro.lab.tables.cells import snapshot
from disentangle_repro.train.store import Store, project_store

STUDY = Request(SCALES["study"])
AE, QLAE = (run_spec("qlae", model, "shapes3d", STUDY, 1) for model in ("ae", "qlae"))
PSA, BROADCAST = run_spec("psa", "psa", "sprites", STUDY, 1), run_spec("psa", "sa", "sprites", STUDY, 1)
STEPS, LATENTS, IMAGES, SLOTS, TILE = 10, 4, 2, 3, 16
NMI = [[0.1, 0.8, 0, 0.2], [0.7, 0, 0, 0], [0, 0.2, 0, 0.6], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
ACTIVE = [True, True, False, True]
OWN = np.array([[0, -1, 5, 0.2], [2, 0.1, 5, 1], [4, 1, 5, 2], [3, 0, 5, 0]])  # two images, and ends of ranges


def colour(column, row):
    "Of a tile; no two have the same."
    return 40 + 50 * column, 10 + 12 * row, 128


def sheet(columns, rows):
    "A sheet of tiles of one colour each."
    colours = np.array([[colour(column, row) for column in range(columns)] for row in range(rows)], np.uint8)
    return Image.fromarray(colours.repeat(TILE, 0).repeat(TILE, 1))


def of_latents(store, spec):
    sheet(LATENTS, STEPS * IMAGES).save(store.folder(spec) / "moves.jpg", quality=95)
    np.savez(store.folder(spec) / "latents.npz", latents=OWN.astype(np.float16), rows=np.arange(4))
    store.finish(spec, {"scores": {"infom": 0.5}, "nmi": NMI, "active": ACTIVE})


def of_slots(store, spec, with_sheet=True):
    if with_sheet:
        sheet(SLOTS + 1, 2 * IMAGES).save(store.folder(spec) / "slots.jpg", quality=95)
    np.savez(store.folder(spec) / "slots.npz", slots=np.zeros((20, SLOTS, 8), np.float16))
    store.finish(spec, {"scores": {"fg_ari": 0.5}})


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explorer")
    store = Store(folder / "runs", folder / "results")
    for spec in (QLAE, AE):
        of_latents(store, spec)
        store.keep(spec, "moves.jpg")
        store.keep(spec, "latents.npz")
    (store.runs / QLAE.id / "moves.jpg").unlink()  # kept beside the records, as by another machine
    of_slots(store, PSA)
    of_slots(store, BROADCAST, with_sheet=False)
    write_assets(folder / "site")
    write_explorer(snapshot(store), folder / "site")
    pages = {"proofs.html", "differences.html", "index.html"}
    for page in pages | {f"runs/{spec.id}/index.html" for spec in (AE, QLAE, PSA)}:
        write_page(folder / "site", page, "page.html", "elsewhere")
    return Site(folder / "site")


def in_page(site):
    text = (site.folder / "explorer.html").read_text(encoding="utf-8")
    return {run["id"]: run for run in json.loads(text.partition('id="sheets">')[2].partition("</script>")[0])}


# what is on the page


def test_the_page_has_what_is_kept(site):
    found = in_page(site)
    assert list(found) == [AE.id, QLAE.id, PSA.id]
    assert "1 finished runs of models of slots have no sheet" in (site.folder / "explorer.html").read_text()
    for run in found.values():
        assert (site.folder / run["sheet"]).stat().st_size > 0 and run["images"] == IMAGES and run["size"] == TILE
        assert f'id="{run["id"]}"' in (site.folder / "explorer.html").read_text()


def test_latents_have_their_values_and_their_nmi(site):
    found = in_page(site)[QLAE.id]
    assert [latent["name"] for latent in found["latents"]] == ["z1", "z0", "z3", "z2"]  # by source; inactive ones last
    first = found["latents"][0]
    assert first["nmi"] == [row[1] for row in NMI] and found["sources"][first["best"]] == "floor hue"
    assert first["share"] == round(0.8 / sum(first["nmi"]), 4)
    assert first["own"] == [-1, pytest.approx(0.1, abs=1e-3)] and first["stop"] == [0, 5]  # of -1 to 1 in ninths
    assert np.allclose(first["values"], [-1 + 2 * i / 9 for i in range(STEPS)], atol=1e-3)
    assert found["start"][0][2] == 0 and found["latents"][-1]["values"] == [5.0] * STEPS


def nearly_as_encoded(store, run, within=0.02):
    "Of each image on a kept sheet the tiles whose latent differs from the image's own by a share of its range at most."
    latents = np.load(store.find(run, "latents.npz"))["latents"].astype(float)
    image = np.asarray(Image.open(store.find(run, "moves.jpg"))).astype(float)
    size, low, high = image.shape[1] // latents.shape[1], latents.min(0), latents.max(0)
    for i in range(image.shape[0] // (size * STEPS)):
        for j, step in np.ndindex(latents.shape[1], STEPS):
            value = low[j] + (high[j] - low[j]) * step / (STEPS - 1)
            if abs(value - latents[i, j]) <= within * (high[j] - low[j]):
                row, column = (i * STEPS + step) * size, j * size
                yield i, image[row : row + size, column : column + size]


KEPT = sorted(path.stem for path in (project_store().results / "moves").glob("*.jpg"))


@pytest.mark.skipif(not KEPT, reason="no sheet is kept")
def test_kept_sheets_are_as_the_page_reads_them(tmp_path):
    store = Store(tmp_path, project_store().results)
    page = write_explorer(snapshot(store), tmp_path / "site")
    weights = sorted(file.stat().st_size for file in (tmp_path / "site" / "explorer").iterdir())
    assert len(weights) > 0 and page.stat().st_size < 200_000 and weights[-1] < 1_000_000
    for run in KEPT[:2]:
        tiles = {}
        for i, tile in nearly_as_encoded(store, run):
            tiles.setdefault(i, []).append(tile)
        apart = [np.abs(tile - of_image[0]).mean() for of_image in tiles.values() for tile in of_image[1:]]
        others = [np.abs(tiles[i][0] - tiles[k][0]).mean() for i in tiles for k in tiles if i < k]
        assert len(apart) > 5 and np.mean(apart) < 6 < 20 < np.mean(others)  # of 255


def test_links_lead_somewhere(site):
    broken = [link for page, link in broken_links(site) if page == "explorer.html"]
    assert [link for link in broken if not link.startswith("index.html#")] == []  # which is no more than a name here


# in the browser


@contextmanager
def at(chromium, site, run, *window):
    "The explorer, reached by a run's link."
    with opened(chromium, site, "explorer.html", *window) as page:
        page.goto(f"{page.url}#{run.id}")
        page.reload()
        page.wait_for_function("() => document.querySelector('#left-run canvas').width === 16")
        yield page


def seen_colour(page, canvas):
    "The colour in the middle of a canvas."
    shot = Image.open(BytesIO(page.locator(canvas).screenshot())).convert("RGB")
    return shot.getpixel((shot.width // 2, shot.height // 2))


def check_tile(page, canvas, column, row):
    "Drawn soon after a key, or after the sheet has been decoded."
    for _ in range(20):
        if np.allclose(seen_colour(page, canvas), colour(column, row), atol=4):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{canvas} is not tile {column}, {row}")


def presses(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def slider(page, side, name):
    return page.locator(f"#{side}-run li", has_text=name).locator("input")


def check_moves(page):
    "With the keyboard: a latent through its values, another one, and back; what is shown is the model's own decoding."
    assert page.locator("#left").input_value() == AE.id and page.locator("#right").input_value() == QLAE.id
    page.wait_for_function("() => document.querySelector('#right-run canvas').width === 16")
    tab_to(page, "#left-run .moves input")  # of z1, the first row
    check_focus(page)
    presses(page, "Home", "ArrowRight", "ArrowRight", "ArrowRight")
    check_tile(page, "#left-run .moved", 1, 3)
    check_tile(page, "#right-run .moved", 1, 0)  # which nobody has moved: as encoded, z1 at its smallest
    words = page.locator("#left-run .words").inner_text()
    assert words == "z1 is −0.33 instead of −1.00", words
    assert slider(page, "left", "z1").get_attribute("aria-valuetext") == "−0.33"
    assert words in page.locator("#left-run .moved").get_attribute("aria-label")
    presses(page, "Tab", "End")  # of z0
    check_tile(page, "#left-run .moved", 0, 9)
    check_tile(page, "#left-run .still", 1, 0)
    assert slider(page, "left", "z1").input_value() == "0"
    assert slider(page, "left", "z1").get_attribute("aria-valuetext") == "as encoded, −1.00"
    presses(page, *["Shift+Tab"] * 2, "Enter")  # the button
    check_tile(page, "#left-run .moved", 1, 0)


def check_images(page):
    "Another image by the arrow keys, and both runs show it."
    page.locator("#images input").first.focus()
    presses(page, "ArrowRight")
    slider(page, "right", "z3").focus()
    presses(page, "End", "ArrowLeft")
    check_tile(page, "#right-run .moved", 3, STEPS + 8)
    assert page.url.endswith("image=2") and page.locator("#images input").nth(1).is_checked()


def check_slots(page):
    "Slots off, one at a time."
    tab_to(page, "#left-run .moves input")
    presses(page, "Tab", "Space")  # the second slot
    check_tile(page, "#left-run .moved", 2, 0)
    check_tile(page, "#left-run li:nth-child(2) canvas", 2, 1)
    assert page.locator("#left-run .words").inner_text() == "without slot 2"
    presses(page, "Tab", "Space")
    assert [box.is_checked() for box in page.locator("#left-run .moves input").all()] == [True, True, False]
    presses(page, "Space")
    check_tile(page, "#left-run .moved", 0, 0)


def test_latents_and_images_by_the_keyboard(chromium, site):
    with opened(chromium, site, "explorer.html", width=1280) as page:
        check_moves(page)
        check_images(page)
        page.reload()
        assert page.locator("#images input").nth(1).is_checked(), "the choice is not kept"
        check_quiet(page)


def test_slots_by_the_keyboard(chromium, site):
    with at(chromium, site, PSA) as page:
        check_slots(page)
        page.locator("#different").wait_for(timeout=5_000)  # beside AE
        page.keyboard.press("Shift+Tab")
        page.evaluate("() => { location.hash = 'content'; }")  # the skip link
        assert page.locator("#left").input_value() == PSA.id
        check_quiet(page)


@pytest.mark.parametrize(("width", "scheme", "run"), [(1280, "dark", AE), (390, "light", PSA)])
def test_nothing_serious_for_axe(chromium, site, width, scheme, run):
    with at(chromium, site, run, width, scheme) as page:
        check_width(page)
        check_quiet(page)
        check_axe(page)
        labels = page.locator(".strip").evaluate_all("all => all.map(one => one.ariaLabel)")
        assert run is PSA or "floor hue 0.80" in labels[0]


def test_without_a_script_the_sheets_are_linked(chromium, site):
    with opened(chromium, site, "explorer.html", java_script_enabled=False) as page:
        assert page.locator("noscript").is_visible() and page.locator("td a[href^='explorer/']").count() == 3


# that these checks can fail

SPOILED = {
    "the same image": (
        "[k, step]) => [run.latents[k].column, image * run.steps",
        "[k, step]) => [run.latents[k].column, 0",
    ),
    "one step too far": ("[k, slider.valueAsNumber]", "[k, slider.valueAsNumber + 1]"),
    "two latents at once": ("moved ? side.moved[1] : latent.stop[image]", "moved ? side.moved[1] : slider.value"),
}


@pytest.mark.whole
@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_explorer_is_noticed(chromium, site, tmp_path, how):
    old, new = SPOILED[how]
    script = site.folder / "assets" / "explorer.js"
    assert script.read_text().count(old) == 1, how
    shutil.copytree(site.folder, tmp_path / "site")
    (tmp_path / "site" / "assets" / "explorer.js").write_text(script.read_text().replace(old, new))
    with opened(chromium, Site(tmp_path / "site"), "explorer.html") as page, pytest.raises(AssertionError):
        check_moves(page)
        check_images(page)
