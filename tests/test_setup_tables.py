"Tables 3 to 11 of qlae: every printed entry has ours or a reason, and both agree but where the paper is known to err."

import math
from collections import Counter

import pandas as pd
import pytest

from disentangle_repro.qlae import settings
from disentangle_repro.tables import setup
from disentangle_repro.tables.setup import our_setup, read_entry, reported_setup, setup_tables, write_setup

N_ENTRIES = {"3": 12, "4": 6, "5": 7, "6": 7, "7": 9, "8": 4, "9": 7, "10": 9, "11": 16}
EXCHANGED = {("4", "2 camera orientation"): ("10", "15"), ("4", "5 wall color"): ("15", "10")}  # Q11
DESCRIPTIONS = {("3", f"{name}: description") for name in ("Shapes3D", "MPI3D", "Falcor3D", "Isaac3D")}


@pytest.fixture(scope="module")
def entries():
    return pd.concat(setup_tables(), names=["table", "row"])


def differing(tables):
    rows = pd.concat(tables)
    return set(rows.index[rows.note.str.startswith("differs")])


def test_the_file_has_every_printed_entry_once():
    reported = reported_setup()
    assert list(reported.columns) == ["table", "row", "value", "note"]
    assert Counter(reported.table) == N_ENTRIES and not reported.duplicated(["table", "row"]).any()
    assert reported.value.str.strip().ne("").all()


def test_printed_sources_span_the_printed_sizes():
    reported = reported_setup().set_index(["table", "row"]).value.map(read_entry)
    for number, dataset in zip("4567", ("Shapes3D", "MPI3D", "Falcor3D", "Isaac3D"), strict=True):
        counts = reported[number]
        assert len(counts) == reported["3", f"{dataset}: n_s"]
        assert math.prod(counts) == reported["3", f"{dataset}: |D|"]
        assert [int(row.split()[0]) for row in counts.index] == list(range(len(counts)))


def test_every_entry_has_ours_or_a_reason(entries):
    assert set(entries.index) - set(our_setup()) == DESCRIPTIONS
    assert set(our_setup()) <= set(entries.index)
    without = entries[entries.ours == "not compared"]
    assert set(without.index) == DESCRIPTIONS and without.note.ne("").all()
    assert entries.ours.ne("").all()


def test_ours_are_the_printed_ones_but_for_what_the_paper_exchanged(entries):
    differ = entries[entries.note.str.startswith("differs")]
    assert {index: (row.paper, row.ours) for index, row in differ.iterrows()} == EXCHANGED
    assert differ.note.str.contains("Q11").all()
    for index, ours in our_setup().items():
        assert (read_entry(entries.paper[index]) == ours) == (index not in EXCHANGED), index


@pytest.mark.parametrize(
    ("text", "entry"),
    [("1 × 10^-2", 0.01), ("≤ 2 × 10^5", 200_000), ("480,000", 480_000), ("[0, 0.1]", (0, 0.1)), ("x y", "x y")],
)
def test_printed_numbers_are_read(text, entry):
    assert read_entry(text) == entry


def test_a_setting_that_is_not_the_papers_is_seen(monkeypatch):
    monkeypatch.setitem(settings.AUTOENCODERS, "beta2", 0.999)
    tables = setup_tables()
    assert differing(tables) == {*EXCHANGED, ("9", "AdamW β_2")}
    assert tables["9"].loc["AdamW β_2"].tolist()[:2] == ["0.99", "0.999"]


def test_models_that_do_not_agree_are_seen(monkeypatch):
    ql = settings.SETTINGS["qlinfowgan_gp"]
    other = settings.Setting(ql.training, {**ql.model, "commit": 0.25}, ql.tuned, (0.1, 1.0), ql.strengths)
    monkeypatch.setitem(settings.SETTINGS, "qlinfowgan_gp", other)
    tables = setup_tables()
    assert differing(tables) == {*EXCHANGED, ("8", "λ_commit"), ("11", "QLInfoWGAN-GP: values")}
    assert tables["8"].ours["λ_commit"] == "0.01 or 0.25"


def test_a_source_out_of_its_place_is_seen(monkeypatch):
    sources = setup.GRIDS["isaac3d"].sources
    moved = type(sources)(sources.names[::-1], sources.value_counts[::-1])
    scene = type("Grid", (), {"sources": moved})
    monkeypatch.setitem(setup.GRIDS, "isaac3d", scene)
    table = setup_tables()["7"]
    assert table.ours["0 object shape"] == "not compared" and table.note["0 object shape"] == ""


def test_tables_are_written(tmp_path):
    files = write_setup(tmp_path / "new")
    endings = (".md", ".html", ".csv")
    assert {path.name for path in files} == {f"qlae_table_{n}{ending}" for n in N_ENTRIES for ending in endings}
    for number, n in N_ENTRIES.items():
        table = pd.read_csv(tmp_path / "new" / f"qlae_table_{number}.csv", dtype=str, keep_default_na=False)
        assert list(table.columns) == ["entry", "paper", "ours", "note", "table"] and len(table) == n
        rows = [line for line in (tmp_path / "new" / f"qlae_table_{number}.md").read_text().splitlines() if "|" in line]
        assert len(rows) == n + 2 and len({line.replace(r"\|", "").count("|") for line in rows}) == 1
