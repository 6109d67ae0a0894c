"The data room: files that are not what they claim to be, interrupted writing, and the same pictures from every road."

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
import torch

from disentangle_repro.core.errors import DataError
from disentangle_repro.data import list_datasets, load, load_dataset, official
from disentangle_repro.data.official import read_rows, read_shapes3d, write_shapes3d
from disentangle_repro.data.scenes import to_bytes
from disentangle_repro.data.shapes3d import SHAPES3D
from disentangle_repro.data.sources import Sources

# every shape, and the first and last value of all else: 2 * 2 * 2 * 2 * 4 * 2 = 128 pictures
SMALL = dataclasses.replace(SHAPES3D, sources=Sources(SHAPES3D.sources.names, (2, 2, 2, 2, 4, 2)))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    "A whole grid and a subset, as bytes."
    folder = tmp_path_factory.mktemp("written")
    write_shapes3d(folder / "grid.h5", SMALL, device="cpu")
    write_shapes3d(folder / "part.h5", SMALL, n=70, seed=3, device="cpu")
    return {path.stem: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def grid(written, tmp_path):
    "A fresh copy of the whole grid's file, to be spoilt."
    path = tmp_path / "3dshapes.h5"
    path.write_bytes(written["grid"])
    return path


@pytest.fixture
def part(written, tmp_path):
    path = tmp_path / "part.h5"
    path.write_bytes(written["part"])
    return path


def replaced(path, name, data):
    with h5py.File(path, "a") as file:
        del file[name]
        if data is not None:
            file[name] = data


def labels_of(path):
    with h5py.File(path) as file:
        return file["labels"][:]


def refused(path, scene=SMALL):
    with pytest.raises(DataError) as caught:
        read_shapes3d(path, scene=scene)
    assert caught.value.path == path and str(path) in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")


# -- the published layout, there and back


def test_a_whole_grid_is_what_was_drawn(grid):
    images, sources = read_shapes3d(grid, scene=SMALL)
    assert sources.equal(SMALL.sources.factors(torch.arange(128)))
    assert images.equal(to_bytes(SMALL.generate(sources)))


def test_a_whole_grid_needs_no_attributes(grid):
    with h5py.File(grid, "a") as file:
        for name in list(file.attrs):
            del file.attrs[name]
        assert set(file) == {"images", "labels"}
    assert len(read_shapes3d(grid, scene=SMALL)[0]) == 128


def test_a_subset_says_what_it_is(part):
    with h5py.File(part) as file:
        assert dict(file.attrs) == {
            "generator": "disentangle_repro shapes3d",
            "version": SHAPES3D.version,
            "seed": 3,
            "grid_size": 128,
        }
        assert file["rows"][:].tolist() == SMALL.sources.subset(70, 3).tolist()


@pytest.mark.parametrize("chunks", [None, (1, 64, 64, 3), (50, 64, 64, 3), (100, 8, 8, 1)])
def test_rows_come_in_the_order_asked_for_whatever_the_chunks(grid, chunks):
    images, sources = read_shapes3d(grid, scene=SMALL)
    with h5py.File(grid, "a") as file:
        del file["images"]
        file.create_dataset("images", data=images.numpy(), chunks=chunks)
    rows = torch.tensor([127, 0, 64, 63, 63, 99, 1])
    some_images, some_sources = read_shapes3d(grid, rows, SMALL)
    assert some_images.equal(images[rows]) and some_sources.equal(sources[rows])


def test_only_chunks_with_wanted_rows_are_read():
    class Recorder:
        chunks, shape, dtype = (10, 1), (1000, 1), np.dtype("uint8")
        reads = []

        def __getitem__(self, rows):
            self.reads.append((rows.start, rows.stop))
            return np.arange(rows.start, rows.stop)[:, None] % 256

    assert read_rows(Recorder(), np.array([998, 12, 15, 13]))[:, 0].tolist() == [998 % 256, 12, 15, 13]
    assert Recorder.reads == [(12, 16), (998, 999)]


def test_rows_outside_the_file_are_refused(grid):
    with pytest.raises(ValueError, match="rows is 3 to 128 but .* has rows 0 to 127"):
        read_shapes3d(grid, torch.tensor([3, 128]), SMALL)


# -- files that are refused, and why


def test_missing_file(tmp_path):
    assert refused(tmp_path / "3dshapes.h5") == "does not exist"


def test_not_hdf5(grid):
    grid.write_bytes(b"<html>404</html>" * 100)
    assert refused(grid).startswith("is no hdf5 file or not a whole one")


@pytest.mark.parametrize("kept", [0, 100, 0.5, -1])
def test_truncated(grid, kept):
    whole = grid.read_bytes()
    grid.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    assert refused(grid).startswith("is no hdf5 file or not a whole one")


def test_damaged_pictures(grid):
    with h5py.File(grid) as file:
        chunk = file["images"].id.get_chunk_info(1)
    whole = bytearray(grid.read_bytes())
    whole[chunk.byte_offset : chunk.byte_offset + chunk.size] = bytes(chunk.size)
    grid.write_bytes(whole)
    assert refused(grid).startswith("is no hdf5 file or not a whole one")


@pytest.mark.parametrize("name", ["images", "labels"])
def test_missing_data_set(grid, name):
    replaced(grid, name, None)
    assert refused(grid) == f"has no data set '{name}'"


def test_group_in_place_of_a_data_set(grid):
    replaced(grid, "labels", None)
    with h5py.File(grid, "a") as file:
        file.create_group("labels")
    assert refused(grid) == "has no data set 'labels'"


def test_wrong_types(grid):
    labels = labels_of(grid)
    replaced(grid, "labels", labels.astype("float32"))
    assert refused(grid) == "'labels' has type float32 but must have float64"
    replaced(grid, "images", np.zeros((128, 64, 64, 3), "float32"))
    assert refused(grid) == "'images' has type float32 but must have uint8"


def test_wrong_shapes(grid):
    labels = labels_of(grid)
    replaced(grid, "labels", labels[:, :5])
    assert refused(grid) == "one row of 'labels' has shape (5,) but must have (6,)"
    replaced(grid, "images", np.zeros((128, 3, 64, 64), "uint8"))
    assert refused(grid) == "one row of 'images' has shape (3, 64, 64) but must have (64, 64, 3)"


def test_different_lengths(grid):
    replaced(grid, "labels", labels_of(grid)[:-1])
    assert refused(grid) == "has 128 images but 127 labels"


def test_a_label_that_is_no_value(grid):
    for value in (0.8, 1.3, 0.7, np.nan, np.inf):
        labels = labels_of(grid)
        labels[17, 3] = value
        replaced(grid, "labels", labels)
        assert refused(grid) == (
            f"column 3 of 'labels' (scale) is {value:g} in row 17, which is none of the 2 values from 0.75 to 1.25"
        )
        labels[17, 3] = 0.75
        replaced(grid, "labels", labels)


def test_swapped_columns_of_different_values(grid):
    replaced(grid, "labels", labels_of(grid)[:, [0, 1, 2, 4, 3, 5]])
    assert "column 3 of 'labels' (scale) is 0 in row 0" in refused(grid)


@pytest.mark.parametrize("which", ["grid", "part"])
def test_swapped_columns_of_equal_values(which, request):
    path = request.getfixturevalue(which)
    replaced(path, "labels", labels_of(path)[:, [1, 0, 2, 3, 4, 5]])
    assert "rows are out of order, or columns are swapped" in refused(path)


def test_rows_out_of_order(grid):
    labels = labels_of(grid)
    replaced(grid, "labels", labels[np.r_[:100, 101, 100, 102:128]])
    assert refused(grid).startswith("row 100 of 'labels' is row 101 of the grid but must be row 100")


def test_part_of_a_grid_that_does_not_say_so(part):
    replaced(part, "rows", None)
    assert refused(part) == "has 70 images but there is no data set 'rows', and the whole grid has 128"


def test_rows_of_another_length(part):
    replaced(part, "rows", np.arange(69))
    assert refused(part) == "has 70 images but 'rows' names 69"


def test_the_full_size_reader_refuses_a_smaller_grid(grid):
    assert refused(grid, SHAPES3D) == "has 128 images but there is no data set 'rows', and the whole grid has 480000"


# -- writing


def test_the_same_seed_writes_the_same_file(tmp_path):
    for name in ("a.h5", "b.h5"):
        write_shapes3d(tmp_path / name, n=50, seed=1, device="cpu")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    write_shapes3d(tmp_path / "c.h5", n=50, seed=2, device="cpu")
    assert not read_shapes3d(tmp_path / "a.h5")[1].equal(read_shapes3d(tmp_path / "c.h5")[1])


def test_batches_make_no_difference(tmp_path):
    for batch in (7, 64, 300):
        write_shapes3d(tmp_path / f"{batch}.h5", n=300, batch=batch, device="cpu")
    first, second, third = (read_shapes3d(tmp_path / f"{batch}.h5")[0] for batch in (7, 64, 300))
    assert first.equal(second) and second.equal(third)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_write_leaves_nothing(tmp_path, fault):
    def draw(values, image_size, samples, repeats):
        if len(values) < 50:
            raise fault
        return SHAPES3D.draw(values, image_size, samples, repeats)

    with pytest.raises(fault):
        write_shapes3d(tmp_path / "new" / "half.h5", dataclasses.replace(SHAPES3D, draw=draw), n=70, batch=50)
    assert not list((tmp_path / "new").iterdir())


def test_an_interrupted_write_keeps_the_earlier_file(tmp_path, part):
    def draw(values, image_size, samples, repeats):
        raise KeyboardInterrupt

    before = part.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write_shapes3d(part, dataclasses.replace(SHAPES3D, draw=draw), n=70)
    assert part.read_bytes() == before and list(tmp_path.iterdir()) == [part]


def test_a_killed_write_leaves_no_file_of_that_name(tmp_path):
    write = "from disentangle_repro.data.official import write_shapes3d; write_shapes3d('all.h5', batch=64)"
    process = subprocess.Popen([sys.executable, "-c", write], cwd=tmp_path, stderr=subprocess.DEVNULL)
    while not any(path.stat().st_size > 100_000 for path in tmp_path.iterdir()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [path.name for path in tmp_path.iterdir()] == [f".all.h5.{process.pid}.part"]


# -- loading


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path))
    return tmp_path


def test_rendered_files_are_drawn_once(data, monkeypatch):
    first = load_dataset("shapes3d", n=30, seed=4)
    monkeypatch.setattr(load, "write_shapes3d", lambda *arguments: pytest.fail("drawn again"))
    second = load_dataset("shapes3d", n=30, seed=4)
    assert first.images.equal(second.images) and first.sources.equal(second.sources)
    assert [path.name for path in data.rglob("*.h5")] == ["shapes3d-n30-seed4.h5"]
    assert first.images.device.type == "cpu" and first.source == "rendered"
    assert first.names == SHAPES3D.sources.names and first.value_counts == (10, 10, 10, 8, 4, 15)


def test_a_file_of_another_version_is_drawn_again(data):
    drawn = load_dataset("shapes3d", n=30)
    (path,) = data.rglob("*.h5")
    with h5py.File(path, "a") as file:
        file["images"][:] = 0
        file.attrs["version"] = SHAPES3D.version - 1
    assert load_dataset("shapes3d", n=30).images.equal(drawn.images)


def test_a_truncated_rendered_file_is_refused(data):
    load_dataset("shapes3d", n=30)
    (path,) = data.rglob("*.h5")
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match="not a whole one"):
        load_dataset("shapes3d", n=30)


def test_official_and_rendered_subsets_have_the_same_sources(data, grid, monkeypatch):
    "`grid` lies where the published file is looked for; the scene is as small as it."
    monkeypatch.setitem(load.SCENES, "shapes3d", SMALL)
    monkeypatch.setattr(load, "read_shapes3d", lambda path, rows=None: read_shapes3d(path, rows, SMALL))
    published, drawn = load_dataset("shapes3d", "official", n=40, seed=6), load_dataset("shapes3d", n=40, seed=6)
    assert published.source == "official" and published.sources.equal(drawn.sources)
    assert published.images.equal(drawn.images)
    assert len(load_dataset("shapes3d", "official").images) == 128


def test_a_failed_download_says_what_to_fetch(data, monkeypatch):
    def no_network(*arguments, **options):
        raise OSError("no route to host")

    monkeypatch.setattr(load.pooch, "retrieve", no_network)
    with pytest.raises(DataError) as caught:
        load_dataset("shapes3d", "official", n=5)
    for part in (str(data / "3dshapes.h5"), "no route to host", load.OFFICIAL_URL, load.OFFICIAL_MD5):
        assert part in str(caught.value)


def test_a_download_with_another_checksum_is_not_kept(data, monkeypatch):
    (data / "elsewhere.h5").write_bytes(b"not the published file")
    monkeypatch.setattr(load, "OFFICIAL_URL", "http://localhost/3dshapes.h5")

    def copy(url, output_file, downloader):
        with open(output_file, "wb") as file:
            file.write((data / "elsewhere.h5").read_bytes())

    monkeypatch.setattr(load.pooch.core, "choose_downloader", lambda url, progressbar=False: copy)
    with pytest.raises(DataError, match="MD5|hash"):
        load_dataset("shapes3d", "official", n=5)
    assert not (data / "3dshapes.h5").exists()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"name": "shapes4d"}, "name is 'shapes4d' but must be one of 'shapes3d'"),
        ({"name": "shapes3d", "source": "paper"}, "source is 'paper' but must be one of 'rendered', 'official'"),
        ({"name": "shapes3d", "n": 0}, "n is 0 but must be from 1 to 480000"),
        ({"name": "shapes3d", "n": 480_001}, "n is 480001 but must be from 1 to 480000"),
    ],
)
def test_impossible_arguments(data, arguments, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(**arguments)
    assert not list(data.iterdir())


def test_a_device_asked_for_is_the_device_given(data):
    assert load_dataset("shapes3d", n=3, device="cpu").images.device.type == "cpu"
    assert load_dataset("shapes3d", n=3, device="meta").sources.device.type == "meta"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_draws_the_same_pictures(tmp_path):
    for device in ("cpu", "cuda"):
        write_shapes3d(tmp_path / f"{device}.h5", n=1000, device=device)
    one, other = (read_shapes3d(tmp_path / f"{device}.h5")[0].int() for device in ("cpu", "cuda"))
    assert (one != other).float().mean() < 1e-3


# -- the scene


def test_the_names_are_known():
    assert list_datasets() == ["shapes3d"] and official.SHAPES3D is load.SCENES["shapes3d"]


def test_indices_outside_the_grid_are_not_drawn():
    with pytest.raises(ValueError, match="scale that are not among 0 to 7"):
        SHAPES3D.generate(torch.tensor([[0, 0, 0, 8, 0, 0]]))
    with pytest.raises(ValueError, match=r"sources has shape \(1, 5\) but must have \(n, 6\)"):
        SHAPES3D.generate(torch.zeros(1, 5, dtype=torch.int64))


def test_a_picture_depends_on_its_own_sources_only():
    sources = torch.tensor([[6.0, 1, 9, 5, 0, 11], [6, 1, 9, 5, 0, 11], [2, 2, 2, 2, 3, 2]], requires_grad=True)
    (slopes,) = torch.autograd.grad(SHAPES3D.generate(sources)[0].sum(), sources)
    assert slopes[0, [0, 1, 2, 3, 5]].ne(0).any() and slopes.isfinite().all()
    assert slopes[1:].eq(0).all() and slopes[:, 4].eq(0).all()
