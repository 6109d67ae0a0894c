"A notebook from somebody else is shown without what it would execute, and one that is too large is named."

import base64
import re
import struct
import zlib

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from disentangle_repro.core.errors import DataError
from disentangle_repro.train.store import lighter

pytest.importorskip("nbconvert")
from disentangle_repro.lab.report.run_pages import notebook_html

EVIL = ("<script>alert(1)</script>", "<svg onload=alert(1)>", '<img src="x" onerror="alert(1)">',
        '<a href="javascript:alert(1)">x</a>', "[x](javascript:alert(1))", "<iframe src=//evil></iframe>",
        "[x][1]\n\n[1]: javascript:alert(1)//.png")  # fmt: skip
TABLE = '<table border="1"><thead><tr><th></th><th>InfoM</th></tr></thead><tbody><tr><td>0.5</td></tr></tbody></table>'


def written(path, cells, **metadata):
    nbformat.write(new_notebook(cells=cells, metadata=metadata), path)
    return path


@pytest.mark.parametrize("evil", EVIL)
def test_nothing_of_a_notebook_is_executed(evil, tmp_path, tally):
    kinds = ("text/html", "text/markdown", "text/latex", "text/plain", "image/svg+xml", "application/javascript")
    outputs = [new_output("display_data", {kind: evil}) for kind in kinds]
    outputs += [new_output("stream", text=evil), new_output("display_data", {"text/html": f"{TABLE}{evil}"})]
    outputs += [new_output("error", ename=evil, evalue=evil, traceback=[evil])]
    cells = [new_markdown_cell(f"Before {evil} after"), new_markdown_cell(evil), new_code_cell(evil, outputs=outputs)]
    widgets = {"application/vnd.jupyter.widget-state+json": {"state": evil}}
    html = notebook_html(written(tmp_path / "run.ipynb", cells, widgets=widgets))[0]
    tags = html.replace("&lt;", "").lower()
    assert not any(f"<{name}" in tags for name in ("script", "svg", "iframe", "img"))
    assert not re.search(r"<a[^>]*javascript", html) and "<th>InfoM</th>" in html
    tally("a notebook with a script", believed=0)


def test_an_image_with_a_huge_header_is_named(tmp_path, tally):
    part = struct.pack(">4sIIBBBBB", b"IHDR", 20_000, 20_000, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + part + struct.pack(">I", zlib.crc32(part)) + bytes(100_000)
    output = new_output("display_data", {"image/png": base64.b64encode(png).decode()})
    with pytest.raises(DataError, match="too large"):
        notebook_html(written(tmp_path / "run.ipynb", [new_code_cell("", outputs=[output])]))
    assert lighter(output) == output
    tally("an image of 20,000x20,000 pixels")
