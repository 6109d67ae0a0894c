"The book as web pages: Sphinx reads the same notebooks as nbdev, shows their stored outputs and runs none of them."

import sys
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

settings = ConfigParser(delimiters=["="], interpolation=None)
settings.read(HERE.parents[1] / "settings.ini", encoding="utf-8")
about = settings["DEFAULT"]

project, author, release = about["title"], about["author"], about["version"]
project_copyright = about["copyright"]
language = "en"
root_doc = "index"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx_copybutton"]
extensions += ["chapters", "docments", "excerpts", "tables"]  # beside this file
exclude_patterns = ["**/.ipynb_checkpoints", "proofs/**", "_book/static", "_book/routes.md"]

nb_execution_mode = "off"
nb_output_stderr = "remove"
nb_render_markdown_format = "myst"  # tables and formulas among stored outputs
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_dmath_double_inline = True  # formulas between the lines of a paragraph
myst_heading_anchors = 6
default_role = "code"  # docstrings put names in single backticks
autodoc_member_order = "bysource"  # as __all__ has them
autodoc_typehints = "none"  # the bridge to docments gives each parameter its type as it is written

html_theme = "furo"
html_title = project
html_static_path = ["static"]
html_css_files = ["book.css"]
html_js_files = ["book.js"]
html_copy_source = False
html_last_updated_fmt = None
html_theme_options = {"top_of_page_buttons": [], "navigation_with_keys": True}

# MathJax from a package of PyPI, as one file that needs neither network nor fonts.
mathjax_path = "tex-svg-full.js"
html_static_path.append(str(Path(find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax" / mathjax_path))
