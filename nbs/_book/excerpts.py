"The text of every page as one script: excerpts for the search of a book that is opened from a file."

import json
from html import escape
from pathlib import Path

from docutils import nodes


def text(node):
    "A node's text, in as little HTML as Sphinx's search needs: parts keep their ids; outputs in HTML are left out."
    if isinstance(node, nodes.Text):
        return escape(node.astext(), quote=False)
    if isinstance(node, (nodes.raw, nodes.image, nodes.comment)):
        return ""
    within = ("" if isinstance(node, nodes.TextElement) else "\n").join(map(text, node.children))
    for name in node.get("ids", ()):
        within = f'<div id="{escape(name)}">{within}</div>'
    return within


def write(app, exception):
    if exception or app.builder.format != "html":
        return
    pages = {f"{name}.html": f'<div role="main">{text(app.env.get_doctree(name))}</div>' for name in app.env.found_docs}
    script = Path(app.outdir, "_static", "excerpts.js")
    script.write_text(f"var EXCERPTS = {json.dumps(pages, ensure_ascii=False)};\n", encoding="utf-8")


def setup(app):
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
