"A notebook from somebody else is shown without what it would execute, and a huge image does not stop the report."

import base64
import struct
import zlib
from html.parser import HTMLParser

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from disentangle_repro.train.store import lighter

pytest.importorskip("nbconvert")
from disentangle_repro.lab.report import notebook_html

EVIL = ("<script>alert(1)</script>", "<svg onload=alert(1)>", '"><img src="x" onerror="alert(1)">',
        '<a href="javascript:alert(1)">x</a>', "[x](javascript:alert(1))", "<iframe src=//evil></iframe>",
        '<a href="https://example.org" onclick="https:alert(1)">x</a>',
        "[x][1]\n\n[1]: javascript:alert(1)//.png")  # fmt: skip
KINDS = ("text/html", "text/markdown", "text/latex", "text/plain", "image/svg+xml", "image/png", "image/jpeg",
         "application/javascript", "application/vnd.jupyter.widget-view+json")  # fmt: skip


class Elements(HTMLParser):
    "The elements of a page, each with its attributes."

    def __init__(self, html):
        super().__init__()
        self.all = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.all.append((tag, dict(attributes)))


def written(path, cells, **metadata):
    nbformat.write(new_notebook(cells=cells, metadata=metadata), path)
    return path


@pytest.mark.parametrize("evil", EVIL)
def test_nothing_of_a_notebook_is_executed(evil, tmp_path, tally):
    sized = {kind: {"width": "1 onload=alert(1)", "alt": evil} for kind in KINDS}
    outputs = [new_output("display_data", {kind: evil}, metadata=sized) for kind in KINDS]
    outputs += [new_output("stream", text=evil), new_output("error", ename=evil, evalue=evil, traceback=[evil])]
    cells = [new_markdown_cell(f"Before {evil} after"), new_markdown_cell(evil), new_code_cell(evil, outputs=outputs)]
    widgets = {"application/vnd.jupyter.widget-state+json": {"state": evil}}
    html = notebook_html(written(tmp_path / "run.ipynb", cells, widgets=widgets))
    elements = Elements(html).all
    assert "Before" in html and not {tag for tag, _ in elements} & {"script", "svg", "iframe", "style", "object"}
    assert all(set(of_tag) <= {"class", "src", "alt", "href"} for _, of_tag in elements)
    assert all(of_tag.get("href", "https:").startswith("https:") for _, of_tag in elements)
    assert all(of_tag.get("src", "data:image/").startswith("data:image/") for _, of_tag in elements)
    tally("a notebook with a script", believed=0)


def test_an_image_with_a_huge_header_stops_nothing(tmp_path, tally):
    part = struct.pack(">4sIIBBBBB", b"IHDR", 20_000, 20_000, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + part + struct.pack(">I", zlib.crc32(part)) + bytes(100_000)
    output = new_output("display_data", {"image/png": base64.b64encode(png).decode()})
    assert "data:image/png" in notebook_html(written(tmp_path / "run.ipynb", [new_code_cell("", outputs=[output])]))
    assert lighter(output) == output
    tally("an image of 20,000x20,000 pixels")
