"Templates escape what they are given, refuse what they are not given, and load nothing from elsewhere."

import re

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from disentangle_repro.core.pages import environment, render, source

TEMPLATES = sorted(environment().list_templates())
HOSTILE = "<script>alert('&')</script>"


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_escapes_everything_and_fetches_nothing(name):
    environment().get_template(name)
    text = source(name)
    assert not re.search(r"\|\s*safe|autoescape|Markup", text), "a value would not be escaped"
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text), "fetched from elsewhere"


def test_a_hostile_name_stays_text():
    page = render("table.html", title=HOSTILE, table=Markup("<table></table>"), note=HOSTILE)
    assert "<script" not in page and page.count("&lt;script&gt;alert(&#39;&amp;&#39;)") == 4


def test_a_page_without_a_value_is_refused():
    with pytest.raises(UndefinedError, match="'note' is undefined"):
        render("table.html", title="", table="")
