"The command disentangle-repro: what it reads, prints, writes and refuses."

import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import h5py
import numpy as np
import pandas as pd
import pytest

from disentangle_repro import __version__, command, metrics
from disentangle_repro.command import IN_A_CHECKOUT, main, read_pair
from disentangle_repro.lab.command import CHAPTERS
from disentangle_repro.metrics import dci, infomec, score

SMALL = ["--dci-samples", "60", "--no-chance"]
EVERY = ["InfoM", "InfoE", "InfoC", "D", "I", "C", "MIG", "MIG-sup", "modularity", "DCIMIG", "JEMMIG",
         "SAP", "explicitness", "E", "S", "IRS", "beta-VAE", "FactorVAE"]  # fmt: skip


@pytest.fixture(scope="module")
def both():
    generator = np.random.default_rng(0)
    sources = generator.integers(0, [3, 4], size=(200, 2))
    return sources, np.column_stack([sources, generator.normal(size=200)]) + 0.1 * generator.normal(size=(200, 3))


@pytest.fixture(scope="module")
def scored(both):
    "Their scores, DCI on 60 samples."
    return score(*both, dci_samples=60)


@pytest.fixture
def files(tmp_path, both, monkeypatch):
    "The same numbers in files of every kind."
    sources, latents = both
    monkeypatch.chdir(tmp_path)
    np.savez("both.npz", latents=latents, sources=sources)
    np.save("latents.npy", latents)
    np.save("sources.npy", sources)
    Path("text.npz").write_text("latents, sources")
    np.savetxt("latents.csv", latents, delimiter=",", fmt="%.18g")
    pd.DataFrame(sources, columns=["shape", "hue"]).to_csv("sources.csv", index=False)
    named = {f"latent_{j}": z for j, z in enumerate(latents.T)} | {f"source_{i}": s for i, s in enumerate(sources.T)}
    pd.DataFrame(named).to_csv("both.csv", index=False)
    pd.DataFrame(named).rename(columns=str.upper).to_csv("semicolons.csv", index=False, sep=";")
    pd.DataFrame(named).to_csv("both.tsv", index=False, sep="\t")
    with h5py.File("both.h5", "w") as file:
        file["latents"], file["sources"] = latents, sources
    return tmp_path


def refused(capsys, *arguments):
    "What a refused command says in its last line."
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err.strip().splitlines()[-1]


# reading


@pytest.mark.parametrize("pair", [
    ("both.npz", None), ("both.csv", None), ("semicolons.csv", None), ("both.tsv", None), ("both.h5", None),
    ("latents.npy", "sources.npy"), ("latents.csv", "sources.csv"), ("both.npz", "sources.csv"),
    ("latents.npy", "both.csv"),
])  # fmt: skip
def test_every_kind_of_file_gives_the_same_numbers(files, both, pair):
    sources, latents = read_pair(Path(pair[0]), pair[1])
    np.testing.assert_array_equal(sources, both[0])
    np.testing.assert_array_equal(latents, both[1])


def test_parquet_is_read_or_said_to_be_unreadable(files, both):
    table = pd.DataFrame(both[1], columns=["a", "b", "c"])
    try:
        table.to_parquet("latents.parquet")
    except ImportError:
        Path("latents.parquet").write_bytes(b"PAR1")
        with pytest.raises(ValueError, match="latents.parquet: pandas needs pyarrow"):
            read_pair(Path("latents.parquet"), "sources.npy")
    else:
        np.testing.assert_array_equal(read_pair(Path("latents.parquet"), "sources.npy")[1], both[1])


# scoring


def test_the_table_says_scores_and_samples(files, both, capsys):
    main(["score", "both.npz", *SMALL])
    printed = capsys.readouterr().out
    info = infomec(both[0], both[1], discrete=False)
    assert [line.split()[0] for line in printed.splitlines()[2 : 2 + len(EVERY)]] == EVERY
    assert re.search(f"InfoM +modularity +{info.infom:.3f} +200\n", printed)
    assert printed.splitlines()[5].split()[-1] == "60"
    assert "2 sources; 3 continuous latents, 3 active; field protocol" in printed and "--discrete" not in printed


def test_options_reach_the_metrics(files, both, capsys):
    np.savez("rounded.npz", latents=both[1].round(), sources=both[0])
    main(["score", "rounded.npz", "--discrete", "--protocol", "code", *SMALL])
    printed = capsys.readouterr().out
    info = infomec(both[0], both[1].round(), discrete=True, protocol="code")
    assert re.search(f"InfoE +explicitness +{info.infoe:.3f} ", printed) and "discrete latents" in printed


@pytest.mark.parametrize(("asked", "protocol"), [([], "field"), (["--protocol", "paper"], "paper")])
def test_the_default_is_the_fields_dci_and_the_texts_infomec(files, both, capsys, asked, protocol):
    sources, latents = both
    printed = (main(["score", "both.npz", "--dci-samples", "0", *asked]), capsys.readouterr().out)[1]
    info = infomec(sources, latents, discrete=False)
    trees = dci(sources, latents, protocol=protocol)
    for name, value in {"InfoM": info.infom, "InfoE": info.infoe, "D": trees.d, "C": trees.c}.items():
        assert re.search(rf"^{name} .* {value:.3f} ", printed, re.MULTILINE)
    assert f"{protocol} protocol (DCI: splits choose from" in printed


def test_every_score_is_that_of_its_function(both):
    sources, latents = both
    models = [latents[:, ::-1], latents**3]
    scored = score(sources, latents, dci_samples=60, seed=2, protocol="code", models=models)
    rows = np.sort(np.random.default_rng(2).permutation(200)[:60])
    of_all = {"mig": metrics.mig, "mig_sup": metrics.mig_sup, "modularity": metrics.modularity_score,
              "dcimig": metrics.dcimig, "jemmig": metrics.jemmig, "irs": metrics.irs}  # fmt: skip
    for name, function in of_all.items():
        assert scored.scores[name] == function(sources, latents) and scored.samples[function.__name__] == 200
    some = sources[rows], latents[rows]
    assert scored.scores["sap"] == metrics.sap(*some, seed=2) and scored.samples["sap"] == 60
    assert scored.scores["explicitness"] == metrics.explicitness_score(*some, protocol="code", seed=2)
    assert scored.scores["d"] == dci(*some, protocol="code", seed=2).d
    assert scored.scores["dci_es_e"] == metrics.dci_es(*some, seed=2).e and scored.scores["dci_es_s"] == 2 / 3
    assert scored.scores["udr"] == metrics.udr([latents, *models], protocol="code")[0]
    assert scored.to_dict() == scored.scores and scored.left_out == {}


def test_scores_of_generators_need_a_complete_grid(both):
    sources, latents = both
    some = sources.any(axis=1)
    assert {"irs", "beta_vae_score", "factor_vae_score"} <= score(sources, latents, dci_samples=60).scores.keys()
    found = score(sources[some], latents[some], dci_samples=60)
    assert "irs" in found.scores and {"beta_vae_score", "factor_vae_score"} == found.left_out.keys()
    assert "a generator needs all of them" in found.left_out["beta_vae_score"]


def test_what_one_source_or_one_latent_does_not_allow_is_left_out_with_its_reason(files, both, capsys):
    np.savez("one.npz", sources=both[0][:, :1], latents=both[1])
    main(["score", "one.npz", "--html", "one.html", *SMALL])
    printed = capsys.readouterr().out
    assert re.search("MIG +one latent", printed) and re.search("SAP +predicted", printed)
    assert "Left out: DCI, DCI-ES. sources has 1 columns and latents has 3" in printed
    assert "Left out: MIG-sup. sources has 1 column" in printed and "Left out: MIG-sup" in Path("one.html").read_text()
    np.savez("one.npz", sources=both[0], latents=both[1][:, :1])
    main(["score", "one.npz", *SMALL])
    assert "Left out: MIG. latents has 1 column" in capsys.readouterr().out


def test_indices_in_no_order_have_the_scores_of_counts_alone(both):
    sources, latents = both
    indices = np.digitize(latents, [-1, 0, 1])
    kind = {"discrete": True, "categorical": True, "dci_samples": 60}
    found = score(sources, indices, **kind)
    counts = {"mig", "mig_sup", "modularity", "dcimig", "jemmig"}
    assert found.scores.keys() == {"infom", "infoe", "infoc", "d", "i", "c", *counts}
    assert {*found.left_out.values()} == {"latents are categorical: needed are continuous or discrete ones."}
    renamed = score(sources, np.array([100, -5, 3, 7])[indices], **kind).scores
    assert {name: renamed[name] for name in counts} == pytest.approx({name: found.scores[name] for name in counts})


def test_one_json_object_has_scores_samples_and_reasons(files, scored, capsys):
    main(["score", "both.npz", "--json", *SMALL])
    found = json.loads(capsys.readouterr().out)
    assert found["scores"] == scored.scores and found["samples"] == scored.samples and found["left_out"] == {}
    assert (found["latents"], found["active"], found["sources"]) == ("continuous", [True] * 3, 2)
    assert found["protocol"] == "field" and found["remarks"] == []


def test_several_files_are_trainings_of_one_model(files, both, capsys):
    sources, latents = both
    noise = 0.05 * np.random.default_rng(1).normal(size=latents.shape)
    np.savez("second.npz", latents=latents + noise, sources=sources)
    main(["score", "both.npz", "second.npz", "--metrics", "mig", "--json"])
    found = json.loads(capsys.readouterr().out)
    each = [score(*read_pair(Path(name)), metrics=["mig"]).scores["mig"] for name in ("both.npz", "second.npz")]
    assert found["scores"]["mig"] == pytest.approx(np.mean(each)) and found["settings"]["trainings"] == 2
    assert found["half_widths"]["mig"] == pytest.approx(12.706 * abs(each[0] - each[1]) / 2, rel=1e-3)
    said = refused(capsys, "score", "both.npz", "second.npz", "--html", "x")
    assert "--html is for one file of latents, not 2" in said


def test_a_paper_gets_intervals_settings_and_a_citation(files, capsys):
    main(["score", "both.npz", "--metrics", "mig", "--interval", "--methods"])
    printed = capsys.readouterr().out
    assert re.search(r"MIG .* 0\.\d{3} ± 0\.\d{3} +0\.\d{3} +0\.\d{3}", printed)
    assert "bins 20" in printed and f"version = {{{__version__}}}" in printed and "dci(predictor='boosting')" in printed
    main(["score", "both.npz", "--metrics", "mig", "--no-chance", "--latex"])
    settings, *table = capsys.readouterr().out.splitlines()
    assert json.loads(settings.removeprefix("% "))["mig"]["bins"] == 20
    assert table[0].startswith(r"\begin{tabular}") and table[1] == r"\toprule" and r"\hline" not in str(table)


def test_a_score_that_is_no_number_is_null(both):
    scored = score(*both, dci_samples=60)
    scored.scores["mig"] = float("nan")
    assert json.loads(command.as_json(scored))["scores"]["mig"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["named.npz", "--latents", "z", "--sources", "factors"],
        ["latents.npy", "--sources", "named.npz:factors"],
        ["named.h5", "--latents", "test/z", "--sources", "test/factors"],
        ["named.csv", "--latents", "z", "--sources", "factor"],
        ["named.csv", "--latents", "z", "--sources", "sources.csv"],
    ],
)
def test_arrays_and_columns_have_the_names_that_are_given(files, both, scored, capsys, arguments):
    sources, latents = both
    np.savez("named.npz", z=latents, factors=sources)
    with h5py.File("named.h5", "w") as file:
        file["test/z"], file["test/factors"] = latents, sources
    columns = {f"z{j}": z for j, z in enumerate(latents.T)} | {f"factor {i}": s for i, s in enumerate(sources.T)}
    pd.DataFrame(columns).assign(note=1).to_csv("named.csv", index=False, float_format="%.18g")
    main(["score", *arguments, "--json", *SMALL])
    assert json.loads(capsys.readouterr().out)["scores"] == scored.scores


@pytest.mark.parametrize("kind", ["npz", "h5", "csv"])
def test_sources_in_words_are_categorical_factors(files, both, scored, capsys, kind):
    sources, latents = both
    words = np.column_stack([np.array(["ball", "cone", "cube"])[sources[:, 0]], sources[:, 1].astype(str)])
    if kind == "npz":
        np.savez("worded.npz", latents=latents, sources=words)
    elif kind == "h5":
        with h5py.File("worded.h5", "w") as file:
            file["latents"], file["sources"] = latents, words.astype(object)
    else:
        table = pd.DataFrame(latents, columns=["latent 0", "latent 1", "latent 2"])
        table.assign(source_0=words[:, 0], source_1=words[:, 1]).to_csv("worded.csv", index=False, float_format="%.18g")
    main(["score", f"worded.{kind}", "--json", *SMALL])
    assert json.loads(capsys.readouterr().out)["scores"] == scored.scores


def test_a_missing_word_is_named(files, capsys):
    Path("gap.csv").write_text("latent_0,source_0\n0.5,round\n0.7,\n0.2,flat\n")
    assert "gap.csv: column 'source_0' has no value in row 1" in refused(capsys, "score", "gap.csv")


def test_the_page_needs_no_other_file(files):
    main(["score", "both.npz", "--html", "deep/out.html", *SMALL])
    text = Path("deep/out.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    assert text.count("<svg") == 1 and "<h1>both.npz</h1>" in text and text.count("<td>") == 6 * len(EVERY)
    assert 'src="' not in text and "<link" not in text and "<script" not in text


def test_row_numbers_that_pandas_writes_are_no_latent(files, both):
    _, latents = both
    pd.DataFrame(latents, columns=["z0", "z1", "z2"]).to_csv("indexed.csv")
    np.testing.assert_allclose(command.read_pair(Path("indexed.csv"), "sources.npy")[1], latents)


@pytest.mark.filterwarnings("error")
def test_what_infomec_would_warn_of_is_printed_once(files, both, capsys):
    np.savez("few.npz", latents=both[1][:40].round(), sources=both[0][:40])
    main(["score", "few.npz", "--discrete", *SMALL])
    assert capsys.readouterr().out.count("Only 40 samples") == 1


@pytest.mark.parametrize(
    ("asked", "titles"),
    [(["infomec"], EVERY[:3]), (["mig", "infoc"], [*EVERY[:3], "MIG"]), (["factor_vae_score"], ["FactorVAE"])],
)
def test_some_metrics_are_scored_alone(files, scored, capsys, asked, titles):
    main(["score", "both.npz", "--metrics", *asked, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [metrics.METRIC_NAMES[name] for name in found["scores"]] == titles and found["left_out"] == {}
    assert found["scores"] == {name: scored.scores[name] for name in found["scores"]}
    assert found["active"] == scored.results["infomec"].active.tolist()


def test_constant_latents_are_remarked(files, both, capsys):
    np.savez("constant.npz", latents=0 * both[1], sources=both[0])
    main(["score", "constant.npz", "--metrics", "infomec"])
    said = capsys.readouterr().out
    assert "All latents are constant: scores mean nothing. Has the encoder collapsed" in said
    assert "should they be scored as discrete" not in said
    np.savez("two.npz", latents=both[1] * [1, 0, 0], sources=both[0])
    main(["score", "two.npz", "--metrics", "infomec"])
    assert "Only 1 of 3 latents are active (constant: columns 1, 2)" in capsys.readouterr().out


# refusing


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.npz"], "none.npz: there is no such file"),
        (["."], "is a folder: needed is a file that ends in .npz, .npy, .h5, .csv, .tsv, .parquet"),
        (["latents.txt"], "latents.txt: ends in '.txt' but must be one of .npz, .npy, .h5, .csv, .tsv, .parquet"),
        (["latents.npy"], "latents.npy: holds an array without a name: needed are sources (in a table"),
        (["both.npz", "--sources", "none.csv"], "none.csv: there is no such file"),
        (["both.npz", "--sources", "other.npz"], "other.npz: holds 'labels': needed are sources"),
        (["other.npz"], "other.npz: holds 'labels': needed are sources"),
        (["latents.npy", "--sources", "latents.csv"], "latents.csv: sources[0, 0] is"),
        (["nan.npy", "--sources", "sources.npy"], "nan.npy: latents[7, 1] is nan: every entry must be finite"),
        (["words.csv", "--sources", "sources.npy"], "words.csv: column 'a' holds 'x': needed are numbers"),
        (["words.csv"], "words.csv: holds 'a', 'b': needed are sources"),
        (["other.npz", "--sources", "sources.npy"], "whose names begin with 'latent'), or --latents NAME."),
        (["both.npz", "--latents", "z"], "holds 'latents', 'sources': needed is 'z', which --latents names"),
        (["both.npz", "--sources", "labels"], "holds 'latents', 'sources': needed is 'labels', which --sources names"),
        (["both.npz", "--sources", "other.npz:z"], "other.npz: holds 'labels': needed is 'z', which --sources names"),
        (["both.npz", "--sources", "partial.csv"], "partial.csv: holds 'latent', 'hue', 'shape': needed are sources"),
        (["short.npy", "--sources", "sources.npy"], "short.npy: latents has 9 rows but sources has 200"),
        (["both.npz", "--protocol", "papers"], "invalid choice: 'papers'"),
        (["both.npz", "--dci-samples", "-1"], "--dci-samples is -1 but must be 0, for all, or at least 10"),
        (["both.npz", "--dci-samples", "5"], "--dci-samples is 5 but must be 0, for all, or at least 10"),
        (["both.npz", "--metrics", "infomce"], "Did you mean 'infomec'?"),
        (["both.npz", "--metrics", "psnr"], "psnr: it takes images and reconstructions and is a function to call"),
        (["both.npz", "--metrics", "udr"], "udr: needed are the latents of other models, too"),
        (["both.npz", "--metrics", "mig", "--html", "a.html"], "--html draws the NMI of infomec"),
        (["ragged.npz"], "ragged.npz: cannot be read as .npz of plain numbers: Object arrays cannot be loaded"),
        (["text.npz"], "text.npz: cannot be read as .npz of plain numbers: it is no numpy file"),
    ],
)
def test_what_cannot_be_scored_is_named(files, both, capsys, arguments, message):
    _, latents = both
    np.savez("other.npz", labels=latents)
    np.save("nan.npy", np.where(np.arange(600).reshape(200, 3) == 22, np.nan, latents))
    np.save("short.npy", latents[:9])
    np.savez("ragged.npz", latents=np.array([*latents, None], dtype=object)[:-1], sources=latents)
    pd.DataFrame({"a": ["x", "y"] * 100, "b": 1.0}).to_csv("words.csv", index=False)
    pd.DataFrame({"latent": [0.5], "hue": [1], "shape": [2]}).to_csv("partial.csv", index=False)
    assert message in refused(capsys, "score", *arguments)


class Loud:
    def __reduce__(self):
        return Path.touch, (Path("opened"),)


@pytest.mark.parametrize("name", ["p.npy", "p.npz"])
def test_pickles_are_not_opened(files, capsys, name):
    Path(name).write_bytes(pickle.dumps(Loud()))
    assert f"{name}: cannot be read as {Path(name).suffix} of plain numbers" in refused(capsys, "score", name)
    objects = np.array([[Loud()]], dtype=object)
    np.save(name, objects) if name.endswith("npy") else np.savez(name, latents=objects, sources=objects)
    assert f"{name}: cannot be read" in refused(capsys, "score", name)
    assert not Path("opened").exists()


def test_a_truncated_file_is_named(files, capsys):
    for name in ("both.npz", "latents.npy"):
        Path(name).write_bytes(Path(name).read_bytes()[:-900])
        assert f"{name}: cannot be read as" in refused(capsys, "score", name)
    Path("latents.csv").write_bytes(b"")
    assert "latents.csv: cannot be read as .csv" in refused(capsys, "score", "latents.csv")


def test_only_what_is_asked_for_is_read(files, both, capsys, monkeypatch):
    "An array of objects, one of a terabyte, and one that is damaged are not in the way."
    sources, latents = both
    np.savez("more.npz", latents=latents, sources=sources, meta=np.array([None, {}], dtype=object))
    with h5py.File("more.h5", "w") as file:
        file["latents"], file["sources"] = latents, sources
        file.create_dataset("images", (10**7, 64, 64, 3), "u1", chunks=(1, 64, 64, 3))
    for name in ("more.npz", "more.h5"):
        assert main(["score", name, "--metrics", "mig"]) == 0
    assert "MIG" in capsys.readouterr().out


def corrupt(name: str) -> None:
    content = bytearray(Path(name).read_bytes())
    place = content.index(b"latents.npy") + 60
    content[place : place + 40] = bytes(40)
    Path(name).write_bytes(content)


def test_damaged_arrays_are_named(files, both, capsys):
    sources, latents = both
    np.savez_compressed("flipped.npz", latents=latents, sources=sources)
    corrupt("flipped.npz")
    with h5py.File("empty.h5", "w") as file:
        file["sources"], file["latents"] = sources, h5py.Empty("f8")
    with h5py.File("huge.h5", "w") as file:
        file["sources"] = sources
        file.create_dataset("latents", (10**12, 3), "f8", chunks=(100, 3))
    with h5py.File("one.h5", "w") as file:
        file["sources"], file["latents"] = sources, 3.0
    np.savez("one.npz", sources=np.array("red"), latents=np.array("red"))
    with ZipFile("text.npz", "w") as file:
        file.writestr("latents", "0.5 0.5")
    for name, shape in {"huge.npy": f"({10**12},3)", "larger.npy": f"({10**31},3)", "open.npy": "((200,3)"}.items():
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
        Path(name).write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + latents.tobytes())
    for name in "flipped.npz empty.h5 huge.h5 huge.npy larger.npy open.npy one.h5 one.npz text.npz".split():
        said = refused(capsys, "score", name, "--sources", "sources.npy")
        assert re.search(f"{name}: (cannot be read|holds 'sources': needed are latents)", said)


# listing


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"disentangle-repro {__version__}\n"


def shown_help(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_one_command_has_all_subcommands_in_its_help(capsys):
    settings = (Path(__file__).parents[2] / "settings.ini").read_text(encoding="utf-8")
    assert "\nconsole_scripts = disentangle-repro=disentangle_repro.command:main\n" in settings
    listed = re.findall(r"^    ([\w-]+)\s+\S", shown_help(capsys), re.MULTILINE)
    assert sorted(listed) == sorted([*IN_A_CHECKOUT, "data", "score", "list"])


def test_a_mistyped_subcommand_or_gpu_gets_a_suggestion(capsys):
    assert "Did you mean 'tables'?" in refused(capsys, "tabels")
    assert "Did you mean 'h100'?" in refused(capsys, "plan", "--device", "h10")


@pytest.mark.parametrize("name", [*IN_A_CHECKOUT, "data", "score", "list"])
def test_a_subcommand_has_a_help_under_its_name(capsys, name):
    assert shown_help(capsys, name).startswith(f"usage: disentangle-repro {name} [-h]")


@pytest.mark.parametrize(
    ("what", "some"),
    [("models", ("qlae", "psa_proj")), ("datasets", ("shapes3d", "clevr6")), ("tables", ("tripod", "psa"))],
)
def test_lists(capsys, what, some):
    main(["list", what])
    printed = capsys.readouterr().out
    assert all(word in printed for word in some) and len(printed.splitlines()) > 5


def test_a_list_that_needs_what_is_not_installed_says_what(capsys, monkeypatch):
    def missing():
        raise ModuleNotFoundError("No module named 'sympy'", name="sympy")

    monkeypatch.setattr(command, "listing", lambda what: missing())
    assert "list needs sympy, of the extra 'dev': pip install" in refused(capsys, "list", "proofs")


@pytest.mark.whole
def test_a_score_needs_no_notebooks_and_no_figures(files):
    said = "import sys; from disentangle_repro.command import main; main(['score', 'both.npz', '--dci-samples', '60']);"
    heavy = "{'matplotlib', 'IPython', 'jupyter_client', 'papermill', 'nbformat', 'sympy', 'torchmetrics', 'fastcore'}"
    done = subprocess.run(
        [sys.executable, "-c", f"{said} print(sorted({heavy} & set(sys.modules)))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]" and done.stderr == ""


class Ends:
    "A chapter whose command ends in some way."

    def __init__(self, error: BaseException):
        self.error = error

    def main(self, arguments: list[str]) -> int:
        raise self.error


@pytest.mark.parametrize("name", [*CHAPTERS, "data"])
@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (OSError(28, "No space left on device", "tables/a.md"), 1, "[Errno 28] No space left on device: 'tables/a.md'"),
        (PermissionError(13, "Permission denied", "data/.lock"), 1, "[Errno 13] Permission denied: 'data/.lock'"),
        (KeyboardInterrupt("Interrupted: 2 runs are not begun."), 130, "Interrupted: 2 runs are not begun."),
    ],
)
def test_a_full_disk_or_an_interruption_is_one_line(name, error, status, line, capsys, monkeypatch):
    module = "data.load" if name == "data" else f"lab.{CHAPTERS[name]}"
    monkeypatch.setitem(sys.modules, f"disentangle_repro.{module}", Ends(error))
    assert main([name]) == status and capsys.readouterr().err == f"disentangle-repro: {line}\n"


def test_a_file_in_place_of_a_folder_is_one_line(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path / "file" / "data"))
    assert main(["data", "shapes3d", "--n", "3"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and str(tmp_path / "file") in said
