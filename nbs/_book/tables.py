"The published tables as pages of the book: what `make tables` wrote, without links to records."

import re
from pathlib import Path

TABLES = Path(__file__).parents[2] / "paper_tables" / "tables" / "study"


def written(paper):
    "The claims of a paper and its tables, each under a heading of its own."
    files = sorted(TABLES.glob(f"{paper}_*.md"), key=lambda file: (len(file.name), file.name))
    texts = (file.read_text(encoding="utf-8").partition("\nRecords of the runs:")[0] for file in files)
    return "\n\n".join(re.sub(r"\]\(\.\./[^)]*\)", "]", "#" + text.strip()) for text in texts)


def read(app, name, content):
    folder, _, paper = name.rpartition("/")
    if folder == "_book/tables":
        content[0] += "\n" + written(paper)


def setup(app):
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
