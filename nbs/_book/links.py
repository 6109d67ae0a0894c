"Whether every internal link leads to a page and a place on it: of the notebooks, or of a book: links.py _docs"

import json
import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    "Addresses and ids of a page."

    def __init__(self, path):
        super().__init__()
        self.links, self.ids = set(), {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        self.ids |= {value for name, value in attributes if name == "id"}
        self.links |= {value for name, value in attributes if name in ("href", "src") and value}


def broken(folder):
    "(page, address) of links to no file or no id, and how many links there are."
    pages = {path.resolve(): Page(path) for path in Path(folder).rglob("*.html")}
    found, links = [], 0
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            links += 1
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            if not target.is_file() or (target in pages and unquote(address.fragment) not in pages[target].ids):
                found.append((path.relative_to(Path(folder).resolve()).as_posix(), link))
    return sorted(found), links


@cache
def prose(path):
    "The text of a notebook's markdown cells, or of a page, without blocks of code."
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    return re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(path):
    "The anchors of a page's headings, as the book makes them: without formulas, and numbered where two are the same."
    found = {""}
    for title in re.findall(r"^#{1,6} +(.*?)[ #]*$", prose(path), re.MULTILINE):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]|\$[^$]+\$", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", title.lower().replace(" ", "-"))
        n = 0
        while (numbered := f"{slug}-{n}" if n else slug) in found:
            n += 1
        found.add(numbered)
    return found


def broken_in_notebooks(folder):
    "(page, address) of links in notebooks and pages to no file, page or heading, and how many links there are."
    found, links = [], 0
    for path in sorted([*folder.glob("*.ipynb"), *folder.glob("[a-z]*/**/*.ipynb"), *folder.glob("_book/**/*.md")]):
        text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$|`[^`\n]*`", "", prose(path), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            address = urlsplit(link)
            if address.scheme:
                continue
            links += 1
            target = path.parent / unquote(address.path) if address.path else path
            known = anchors(target) if address.fragment and target.suffix in (".ipynb", ".md") else {address.fragment}
            outside = target.suffix in (".ipynb", ".md") and folder.resolve() not in target.resolve().parents
            if not target.is_file() or outside or unquote(address.fragment) not in known:
                found.append((path.relative_to(folder).as_posix(), link))
    return found, links


if __name__ == "__main__":
    found, links = broken(sys.argv[1])
    print(*(f"{page}: {link}" for page, link in found), f"{links} internal links, {len(found)} broken", sep="\n")
    sys.exit(bool(found))
