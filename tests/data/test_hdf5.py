"Images on disk: files that are not what they claim to be, interrupted drawing, and the same bytes from every road."

from __future__ import annotations

import dataclasses
import fcntl
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import small_scenes
import torch
from small_scenes import GREY, SMALL, SPOTS

from disentangle_repro.baselines.autoencoder import encode_all
from disentangle_repro.core.errors import DataError
from disentangle_repro.data import hdf5
from disentangle_repro.data.hdf5 import OnDisk, read_images, read_rows, write_images
from disentangle_repro.data.shapes3d import SHAPES3D
from disentangle_repro.lab.runs.slots import segment_all
from disentangle_repro.models import create_model


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    "A whole grid, a subset and a set of several objects, as bytes."
    folder = tmp_path_factory.mktemp("written")
    write_images(folder / "grid.h5", SMALL, device="cpu")
    write_images(folder / "part.h5", SMALL, n=70, seed=3, device="cpu")
    write_images(folder / "spots.h5", SPOTS, n=300, seed=3, device="cpu")
    return {path.stem: path.read_bytes() for path in folder.iterdir()}


def fresh(written, tmp_path, name):
    path = tmp_path / f"{name}.h5"
    path.write_bytes(written[name])
    return path


@pytest.fixture
def grid(written, tmp_path):
    "A fresh copy of the whole grid's file, to be spoilt."
    return fresh(written, tmp_path, "grid")


@pytest.fixture
def part(written, tmp_path):
    return fresh(written, tmp_path, "part")


@pytest.fixture
def spots(written, tmp_path):
    return fresh(written, tmp_path, "spots")


SCENE_OF = {"grid": SMALL, "part": SMALL, "spots": SPOTS}


def replaced(path, name, data):
    with h5py.File(path, "a") as file:
        del file[name]
        if data is not None:
            file[name] = data


def labels_of(path):
    with h5py.File(path) as file:
        return file["labels"][:]


def refused(path, scene=None):
    with pytest.raises(DataError) as caught:
        read_images(path, scene or SCENE_OF[path.stem]).images[:]
    assert caught.value.path == path and str(path) in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")


# -- the layout


def test_a_whole_grid_needs_no_attributes(grid):
    with h5py.File(grid, "a") as file:
        for name in list(file.attrs):
            del file.attrs[name]
        assert set(file) == {"images", "labels"}
    assert len(read_images(grid, SMALL).images) == 128


def test_a_file_that_another_process_has_locked_is_read(grid):
    with grid.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert len(read_images(grid, SMALL).images[:]) == 128


def test_a_subset_says_what_it_is(part):
    with h5py.File(part) as file:
        generator, version = "disentangle_repro shapes3d", SHAPES3D.version
        assert dict(file.attrs) == {"generator": generator, "version": version, "seed": 3, "grid_size": 128}
        assert file["rows"][:].tolist() == SMALL.sources.subset(70, 3).tolist()


def test_only_chunks_with_wanted_rows_are_read_and_each_once():
    class Recorder:
        chunks, shape, dtype, compression = (10, 1), (1000, 1), np.dtype("uint8"), None
        reads = []

        def __getitem__(self, rows):
            self.reads.append((rows.start, rows.stop))
            return np.arange(rows.start, rows.stop)[:, None] % 256

    assert read_rows(Recorder(), np.array([998, 12, 15, 13]))[:, 0].tolist() == [998 % 256, 12, 15, 13]
    assert sorted(Recorder.reads) == [(12, 16), (998, 999)]


@pytest.mark.parametrize("rows", [[3, 128], [-1, 3]])
def test_rows_outside_the_file_are_refused(grid, rows):
    with pytest.raises(ValueError, match=f"rows is {rows[0]} to {rows[1]} but .* has rows 0 to 127"):
        read_images(grid, SMALL, torch.tensor(rows))


# -- images on disk behave like a tensor

INDICES = {
    "number": 5,
    "last": -1,
    "slice": slice(3, 60, 7),
    "nothing": slice(0, 0),
    "rows": torch.tensor([9, 2, 2, 69]),
    "one row": torch.tensor(4),
    "table": torch.tensor([[1, 2], [2, 0]]),
    "truth": torch.arange(70) % 9 == 0,
    "negative": torch.tensor([-1, -70]),
}


@pytest.mark.parametrize("which", INDICES.values(), ids=INDICES)
def test_on_disk_is_indexed_like_a_tensor(grid, which):
    rows = torch.randperm(128, generator=torch.Generator().manual_seed(0))[:70]
    tensor, lazy = OnDisk(grid, "images")[:][rows], OnDisk(grid, "images", rows)
    assert lazy[which].equal(tensor[which]) and lazy.shape == tensor.shape and lazy.dtype == tensor.dtype
    assert len(lazy) == len(tensor) and lazy.device == tensor.device


@pytest.mark.parametrize("which", [70, torch.tensor([70]), torch.tensor([-71])])
def test_on_disk_has_an_end(grid, which):
    with pytest.raises(IndexError):
        OnDisk(grid, "images", torch.arange(70))[which]


def test_on_disk_can_be_sent_elsewhere(grid):
    lazy = OnDisk(grid, "images", torch.tensor([3, 1]))
    assert pickle.loads(pickle.dumps(lazy))[:].equal(lazy[:])
    assert lazy.to("meta")[:].device.type == "meta" and lazy.device.type == "cpu"


def test_images_on_disk_are_encoded_and_segmented_as_those_in_memory(grid):
    "They had no `split`, in which a run of slots ended at its first probe."
    lazy, whole = OnDisk(grid, "images"), OnDisk(grid, "images")[:]
    for name, given in (("qlae", {"n_latents": 4}), ("sa", {"n_slots": 3})):
        model = create_model(name, image_size=whole.shape[1], width=0.1, **given).eval()
        assert encode_all(model, lazy, batch_size=7).equal(encode_all(model, whole, batch_size=7))
    assert segment_all(model, lazy).equal(segment_all(model, whole))


# -- files that are refused, and why


@pytest.mark.parametrize("name", SCENE_OF)
@pytest.mark.parametrize("kept", [0, 100, 0.5, -1])
def test_truncated(name, kept, request):
    path = request.getfixturevalue(name)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    assert refused(path).startswith("is no hdf5 file or not a whole one")


@pytest.mark.parametrize("name, data", [("grid", "images"), ("grid", "labels"), ("spots", "masks"), ("part", "labels")])
def test_missing_data_set(name, data, request):
    path = request.getfixturevalue(name)
    replaced(path, data, None)
    assert refused(path) == f"has no data set '{data}'"


WRONG = [
    ("grid", "labels", np.zeros((128, 6), "float32"), "'labels' has type float32 but must have float64"),
    ("grid", "images", np.zeros((128, 64, 64, 3), "float32"), "'images' has type float32 but must have uint8"),
    ("spots", "masks", np.zeros((300, 16, 16), bool), "'masks' has type bool but must have uint8"),
    ("grid", "labels", np.zeros((128, 5)), "one row of 'labels' has shape (5,) but must have (6,)"),
    ("grid", "images", np.zeros((128, 3, 64, 64), "uint8"),
     "one row of 'images' has shape (3, 64, 64) but must have (64, 64, 3)"),
    ("spots", "masks", np.zeros((300, 16, 16, 1), "uint8"),
     "one row of 'masks' has shape (16, 16, 1) but must have (16, 16)"),
    ("grid", "labels", np.zeros((127, 6)), "has 128 images but 127 labels"),
    ("spots", "masks", np.zeros((299, 16, 16), "uint8"), "has 300 images but 299 masks"),
]  # fmt: skip


@pytest.mark.parametrize("name, data, contents, problem", WRONG)
def test_wrong_types_shapes_and_lengths(name, data, contents, problem, request):
    path = request.getfixturevalue(name)
    replaced(path, data, contents)
    assert refused(path) == problem


@pytest.mark.parametrize("value", [0.8, 1.3, 0.7, np.nan, np.inf])
def test_a_label_that_is_no_value(grid, value):
    labels = labels_of(grid)
    labels[17, 3] = value
    replaced(grid, "labels", labels)
    assert refused(grid) == (
        f"column 3 of 'labels' (scale) is {value:g} in row 17, which is none of the 2 values from 0.75 to 1.25"
    )


@pytest.mark.parametrize("column, value", [(0, 1.1), (0, np.nan), (2, -0.01), (1, 2), (3, -1), (4, np.inf)])
def test_a_feature_out_of_range(spots, column, value):
    labels = labels_of(spots)
    labels[17, column] = value
    replaced(spots, "labels", labels)
    assert refused(spots) == f"column {column} of 'labels' ({SPOTS.names[column]}) is {value:g} in row 17: out of range"


def test_a_feature_of_an_absent_object(spots):
    labels = labels_of(spots)
    row = int(np.flatnonzero(labels[:, 3] == 0)[0])
    labels[row, 4] = 0.5
    replaced(spots, "labels", labels)
    assert refused(spots) == f"column 4 of 'labels' (x 2) is 0.5 in row {row}: out of range"


def test_sources_of_another_name(spots):
    with h5py.File(spots, "a") as file:
        file.attrs["names"] = ["light", "x 1", "present 1", "present 2", "x 2"]
    assert refused(spots).startswith("has sources light, x 1, present 1, present 2, x 2 but must have")


@pytest.mark.parametrize("which", ["grid", "part"])
def test_swapped_columns_of_equal_values(which, request):
    path = request.getfixturevalue(which)
    replaced(path, "labels", labels_of(path)[:, [1, 0, 2, 3, 4, 5]])
    assert "rows are out of order, or columns are swapped" in refused(path)


def test_rows_out_of_order(grid):
    replaced(grid, "labels", labels_of(grid)[np.r_[:100, 101, 100, 102:128]])
    assert refused(grid).startswith("row 100 of 'labels' is row 101 of the grid but must be row 100")


def test_part_of_a_grid_that_does_not_say_so(part):
    replaced(part, "rows", None)
    assert refused(part) == "has 70 images but there is no data set 'rows', and the whole grid has 128"


def test_rows_of_another_length(part):
    replaced(part, "rows", np.arange(69))
    assert refused(part) == "has 70 images but 'rows' names 69"


# -- writing


def counted(scene, limit=None, fault=KeyboardInterrupt):
    "The scene, and a list of the blocks that it has drawn; the one after `limit` fails."
    blocks = []

    def draw(*arguments, **options):
        if len(blocks) == limit:
            raise fault
        blocks.append(len(arguments[0]))
        return scene.draw(*arguments, **options)

    return dataclasses.replace(scene, draw=draw), blocks


def hidden_in(folder):
    return sorted(path.name for path in folder.rglob(".*"))


@pytest.mark.parametrize("scene", [SHAPES3D, SPOTS], ids=["grid", "objects"])
def test_the_same_seed_writes_the_same_file(tmp_path, scene):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_images(tmp_path / f"{name}.h5", scene, n=50, seed=seed, device="cpu")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
    assert not read_images(tmp_path / "a.h5", scene).sources.equal(read_images(tmp_path / "c.h5", scene).sources)


@pytest.mark.parametrize("scene", [GREY, SPOTS], ids=["grid", "objects"])
def test_the_number_of_processes_makes_no_difference(tmp_path, scene, monkeypatch):
    write_images(tmp_path / "one.h5", scene, device="cpu", workers=1)
    monkeypatch.setattr(hdf5, "WORTH_HELPERS", 0)
    counting, blocks = counted(scene)
    write_images(tmp_path / "two.h5", counting, device="cpu", workers=2)
    assert len(blocks) == 1, "all but the first block are drawn by other processes"
    assert (tmp_path / "two.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()
    sources = scene.scenes(None, 0)
    assert read_images(tmp_path / "one.h5", scene).images[:].equal(scene.images(sources))
    assert not hidden_in(tmp_path)


def test_helpers_are_called_only_for_much_work(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5.joblib, "Parallel", lambda *_, **__: pytest.fail("helpers called"))
    write_images(tmp_path / "grey.h5", GREY, device="cpu", workers=2)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("scene, blocks_in_all", [(GREY, 8), (SPOTS, 3)], ids=["grid", "objects"])
def test_interrupted_drawing_is_resumed(tmp_path, scene, blocks_in_all, fault):
    failing, blocks = counted(scene, limit=2, fault=fault)
    with pytest.raises(fault):
        write_images(tmp_path / "new" / "half.h5", failing, device="cpu")
    assert not list((tmp_path / "new").glob("*.h5")), "nothing of the final name"
    assert sorted(path.name for path in tmp_path.glob("new/.half.h5.parts/*")) == ["00000.h5", "00001.h5"]
    going_on, more = counted(scene)
    write_images(tmp_path / "new" / "half.h5", going_on, device="cpu")
    assert (len(blocks), len(more)) == (2, blocks_in_all - 2), "no block is drawn twice"
    write_images(tmp_path / "new" / "straight.h5", scene, device="cpu")
    assert (tmp_path / "new" / "half.h5").read_bytes() == (tmp_path / "new" / "straight.h5").read_bytes()
    assert not hidden_in(tmp_path)


OTHERS = {
    "version": ({"version": 2}, {}),
    "seed": ({}, {"seed": 1, "n": 20_000}),
    "number": ({}, {"n": 20_000}),
    "scene": ({"name": "gray"}, {}),
}


@pytest.mark.parametrize("change, arguments", OTHERS.values(), ids=OTHERS)
def test_parts_of_something_else_are_not_used(tmp_path, change, arguments):
    start = {"seed": 0, "n": 20_001} if arguments else {}
    failing, _ = counted(GREY, limit=2)
    with pytest.raises(KeyboardInterrupt):
        write_images(tmp_path / "grey.h5", failing, device="cpu", **start)
    other, blocks = counted(dataclasses.replace(GREY, **change))
    write_images(tmp_path / "grey.h5", other, device="cpu", **arguments)
    # the rows of a smaller subset are the first of a larger one with the same seed
    assert len(blocks) == (-(-arguments.get("n", 30_000) // 4096) - (2 if arguments == {"n": 20_000} else 0))
    contents = read_images(tmp_path / "grey.h5", other)
    assert contents.images[:].equal(GREY.images(contents.sources)) and not hidden_in(tmp_path)


def test_a_spoilt_part_is_drawn_again(tmp_path):
    failing, _ = counted(GREY, limit=3)
    with pytest.raises(KeyboardInterrupt):
        write_images(tmp_path / "grey.h5", failing, device="cpu")
    first, second, third = sorted(tmp_path.glob(".grey.h5.parts/*"))
    second.write_bytes(second.read_bytes()[:-10])
    replaced(third, "labels", None)
    other, blocks = counted(GREY)
    write_images(tmp_path / "grey.h5", other, device="cpu")
    assert len(blocks) == 7
    contents = read_images(tmp_path / "grey.h5", GREY)
    assert contents.images[:].equal(GREY.images(contents.sources))


def test_an_interrupted_write_keeps_the_earlier_file(tmp_path):
    path = tmp_path / "grey.h5"
    write_images(path, GREY, n=10, device="cpu")
    before = path.read_bytes()
    failing, _ = counted(GREY, limit=0)
    with pytest.raises(KeyboardInterrupt):
        write_images(path, failing, n=11, device="cpu")
    assert path.read_bytes() == before


def test_interrupted_joining_leaves_the_parts(tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", joining_interrupted(os.replace))
        write_images(tmp_path / "grey.h5", GREY, device="cpu")
    assert not (tmp_path / "grey.h5").exists() and len(list(tmp_path.glob(".grey.h5.parts/*.h5"))) == 8
    again, blocks = counted(GREY)
    write_images(tmp_path / "grey.h5", again, device="cpu")
    assert not blocks and not hidden_in(tmp_path)


def joining_interrupted(replace):
    def interrupted(source, target):
        if Path(target).name == "grey.h5":
            raise KeyboardInterrupt
        replace(source, target)

    return interrupted


def test_a_file_that_holds_the_images_is_left_alone(tmp_path):
    path = tmp_path / "grey.h5"
    write_images(path, GREY, n=10, device="cpu")
    again, blocks = counted(GREY)
    write_images(path, again, n=10, device="cpu")
    assert not blocks
    write_images(path, dataclasses.replace(again, version=2), n=10, device="cpu")
    assert blocks == [10]


@pytest.mark.parametrize("scene, size", [(GREY, 30_000), (SPOTS, 700)])
@pytest.mark.parametrize("n", [0, -1, 30_001])
def test_impossible_numbers(tmp_path, scene, size, n):
    with pytest.raises(ValueError, match=f"n is {n} but must be from 1 to {size}"):
        write_images(tmp_path / "new" / "none.h5", scene, n=n)
    assert not list(tmp_path.iterdir())


# -- several processes, some of them killed

DRAW = """
from small_scenes import GREY
from disentangle_repro.data import hdf5
hdf5.WORTH_HELPERS = 0
hdf5.write_images("all.h5", GREY, device="cpu", workers={workers})
"""


def start(folder, workers):
    paths = os.pathsep.join(filter(None, (str(Path(small_scenes.__file__).parent), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-c", DRAW.format(workers=workers)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths, "DRAWN": str(folder / "drawn.txt")},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def blocks_drawn(folder):
    return len((folder / "drawn.txt").read_text().split())


def test_killed_drawing_is_resumed(tmp_path):
    process = start(tmp_path, workers=2)
    while len(list(tmp_path.glob(".all.h5.parts/0*.h5"))) < 4:
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = len(list(tmp_path.glob(".all.h5.parts/0*.h5")))
    assert not (tmp_path / "all.h5").exists() and 4 <= kept < 8
    assert blocks_drawn(tmp_path) - kept <= 2, "only blocks under way are lost"
    going_on, blocks = counted(GREY)
    write_images(tmp_path / "all.h5", going_on, device="cpu")
    assert len(blocks) == 8 - kept, "only the missing blocks are drawn"
    contents = read_images(tmp_path / "all.h5", GREY)
    assert contents.images[:].equal(GREY.images(contents.sources)) and len(contents.images) == 30_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.h5", "drawn.txt"]


def test_two_processes_do_not_disturb_each_other(tmp_path):
    processes = [start(tmp_path, workers=1) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert blocks_drawn(tmp_path) == 8, "the second finds what the first has drawn"
    contents = read_images(tmp_path / "all.h5", GREY)
    assert contents.images[:].equal(GREY.images(contents.sources))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.h5", "drawn.txt"]


@pytest.mark.gpu
def test_a_gpu_draws_the_same_images(tmp_path):
    for device in ("cpu", "cuda"):
        write_images(tmp_path / f"{device}.h5", SHAPES3D, n=1000, device=device)
    one, other = (read_images(tmp_path / f"{device}.h5", SHAPES3D).images[:].int() for device in ("cpu", "cuda"))
    assert (one != other).float().mean() < 1e-3
