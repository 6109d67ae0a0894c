"Whether every internal link of the built book leads to a page and a place on it: python nbs/_book/links.py _docs"

import sys
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


if __name__ == "__main__":
    found, links = broken(sys.argv[1])
    print(*(f"{page}: {link}" for page, link in found), f"{links} internal links, {len(found)} broken", sep="\n")
    sys.exit(bool(found))
