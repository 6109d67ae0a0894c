"Notebooks as nbdev means them: directives are obeyed, code of checks and figures folded; folders and chapters listed."

import ast
import json
import re
from pathlib import Path

MODULES = ["package", "metrics", "representations", "models", "layers", "torchmetrics", "lightning", "saved_models"]
MODULES += ["papers", "common", "command"]
DIRECTIVE = re.compile(r"^#\s?\|\s*(.*)\n?", re.MULTILINE)


def markdown(text):
    return {"cell_type": "markdown", "id": "toctree", "metadata": {}, "source": text}


def toctree(entries, caption=""):
    return "```{toctree}\n:hidden:\n" + f":caption: {caption}\n" * bool(caption) + "\n".join(entries) + "\n```\n"


def folders(front, source):
    "In the order of the table on the front page, and then those which it leaves out."
    listed = re.findall(r"\]\((\w+)/index\.ipynb\)", front)
    return list(dict.fromkeys([*listed, *sorted(path.parent.name for path in source.glob("[a-z]*/index.ipynb"))]))


def chapters(folder):
    "In reading order: by number, those without one after them."
    names = {path.stem for path in folder.glob("*.ipynb")} - {"index"}
    return sorted(names, key=lambda name: (not name[0].isdigit(), name))


def contents(name, text, source):
    if name == "index":
        indices = [f"{folder}/index" for folder in folders(text, source)]
        parts = (("Folders", [*indices, "_book/tables"]), ("By name", [*MODULES, "_book/api"]))
        routes = (source / "_book" / "routes.md").read_text(encoding="utf-8").replace("](../", "](")  # from this page
        return [markdown("\n".join([routes, *(toctree(entries, caption) for caption, entries in parts)]))]
    folder, _, chapter = name.rpartition("/")
    within = re.findall(r"\]\((\w+/index)\.ipynb\)", text) if folder == "lab" else []
    return [markdown(toctree([*within, *chapters(source / folder)]))] if chapter == "index" else []


def exports(folder):
    "The chapter that each module of a folder is exported from, and its title."
    found = {}
    for name in chapters(folder):
        text = (folder / f"{name}.ipynb").read_text(encoding="utf-8")
        if module := re.search(r'"#\| default_exp ([\w.]+)', text):
            found[module[1]] = name, re.search(r'"# (.+?)(?:\\n)?"', text)[1]
    return found


def head(name, book, source):
    "How long a chapter takes to read, at 150 words a minute, and which earlier chapters of its folder its code uses."
    words = sum(len("".join(cell["source"]).split()) for cell in book["cells"] if cell["cell_type"] == "markdown")
    code = "\n".join("".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code")
    used = {module.removeprefix("disentangle_repro.") for module in re.findall(r"^from ([\w.]+) import", code, re.M)}
    folder, _, own = name.rpartition("/")
    earlier = {key: value for key, value in exports(source / folder).items() if key in used and value[0] < own}
    links = ", ".join(f"[{title}]({chapter}.ipynb)" for chapter, title in sorted(earlier.values()))
    minutes = max(1, round(words / 150))
    return f"*{minutes} minute{'s' * (minutes > 1)} to read{'; uses ' * bool(links)}{links}.*"


def with_head(name, book, source):
    "The first cell with the head of a chapter after its title and summary; other pages as they are."
    if "/" not in name or name.endswith("/index"):
        return book["cells"]
    first, *rest = book["cells"]
    parts = "".join(first["source"]).split("\n\n")
    text = "\n\n".join([*parts[:2], head(name, book, source), *parts[2:]])
    return [first | {"source": text}, *rest]


def set_apart(text):
    "Formulas on lines of their own become paragraphs of their own, so that no line in them begins a list or a heading."
    parts = text.split("$$")
    for i in range(1, len(parts) - 1, 2):
        if parts[i - 1].endswith("\n") and parts[i + 1].startswith("\n"):
            parts[i - 1] += "\n"
            parts[i + 1] = "\n" + parts[i + 1]
    return "$$".join(parts)


def ends_in_assertion(code):
    "Whether the last statement, or the last one of a loop or `with` at the end, is `assert` or a call of `assert_...`."
    try:
        last = ast.parse(code).body[-1]
    except SyntaxError:  # magics
        return False
    while isinstance(last, (ast.For, ast.With)):
        last = last.body[-1]
    called = getattr(getattr(last, "value", None), "func", None)
    return isinstance(last, ast.Assert) or getattr(called, "attr", getattr(called, "id", "")).startswith("assert_")


def fold(code, outputs):
    "What a cell is folded as, in the words of its button: the code of a figure, or a check; none of other cells."
    if any("image/png" in output.get("data", {}) for output in outputs):
        return "the code of the figure"
    return "the check" if ends_in_assertion(code) else None


def obey(cell):
    "A cell without its directives, or none if it is hidden or empty."
    if cell["cell_type"] == "markdown":
        return cell | {"source": set_apart("".join(cell["source"]))}
    said = DIRECTIVE.findall(code := "".join(cell["source"]))
    code = DIRECTIVE.sub("", code).strip("\n")
    if not code or "hide" in said:
        return None
    exported = any(word.startswith("export") for word in said)
    folded = None if exported else fold(code, cell["outputs"])
    tags = ["remove-input"] * ("echo: false" in said) + ["exported"] * exported + ["hide-input"] * bool(folded)
    for output in cell["outputs"]:  # a piece of the report, shown here: what it links to is not part of the book
        if piece := output.get("data", {}).get("text/html"):
            output["data"]["text/html"] = re.sub(r' href="(?!https?:)[^"]*"', "", "".join(piece))
    prompts = {f"code_prompt_{word.lower()}": f"{word} {folded}" for word in ("Show", "Hide")} if folded else {}
    return cell | {"source": code, "metadata": cell["metadata"] | {"tags": tags, "mystnb": prompts}}


def describe(cells):
    "Figures are described by the last paragraph before them, which says what they show."
    said = ""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            paragraph = re.split(r"\n\s*\n", re.sub(r"\$\$.*?\$\$", "", cell["source"], flags=re.DOTALL).strip())[-1]
            said = " ".join(re.sub(r"\]\([^)]*\)|[`*$\[\]#|]", "", paragraph).split())
        elif any("image/png" in output.get("data", {}) for output in cell["outputs"]) and said:
            cell["metadata"]["mystnb"]["image"] = {"alt": said}
    return cells


def read(app, name, content):
    if not app.env.doc2path(name).suffix == ".ipynb":
        return
    book = json.loads(content[0])
    text = "".join("".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "markdown")
    shown = describe([cell for cell in map(obey, with_head(name, book, Path(app.srcdir))) if cell])
    book["cells"] = shown + contents(name, text, Path(app.srcdir))
    content[0] = json.dumps(book)


def name_parts(app, page, template, context, doctree):
    "For screen readers: Furo's captions are headings and need a level; the button of folded code says what it shows."
    tree = context["furo_navigation_tree"]
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
    context["body"] = context.get("body", "").replace('<summary aria-label="Toggle hidden content">', "<summary>")


def setup(app):
    app.connect("html-page-context", name_parts, priority=900)
    app.connect("source-read", read)
    app.connect("env-get-outdated", lambda app, env, *changes: {n for n in env.found_docs if n.endswith("index")})
    return {"parallel_read_safe": True, "parallel_write_safe": True}
