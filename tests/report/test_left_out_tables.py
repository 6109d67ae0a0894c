"A report made without the extension that added a table says that the table's page is left out."

from types import SimpleNamespace

import pandas as pd
import pytest

from disentangle_repro.report import site as of


@pytest.mark.parametrize(("former", "said"), [(("mine_1", "qlae_1"), "mine_1"), (("qlae_1",), "")])
def test_tables_that_only_the_former_report_has_are_named(tmp_path, monkeypatch, capsys, former, said):
    def pages(names, folder):
        (folder / "tables").mkdir(parents=True)
        for name in names:
            (folder / "tables" / f"{name}.html").touch()
        return folder / "index.html"

    monkeypatch.setattr(of, "survey", lambda store: SimpleNamespace(seen=SimpleNamespace(found={})))
    monkeypatch.setattr(of, "checks_and_differences", lambda: (pd.DataFrame(), []))
    monkeypatch.setattr(of, "linked_chapters", lambda *shown: [])
    monkeypatch.setattr(of, "write_pages", lambda found, folder: pages(["qlae_1"], folder))
    pages(former, tmp_path / "report")
    of.make_report(None, tmp_path / "report")
    printed = capsys.readouterr().out
    assert (f"Left out of the former report: {said}: " in printed and "EXTENSIONS=" in printed) if said else not printed
