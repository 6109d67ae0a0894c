"Data sets that are published as folders: tiny ones in the published layout are read by name, and faults are named."

import dataclasses

import numpy as np
import pytest
import torch
from scipy.io import savemat

from disentangle_repro.core.errors import DataError
from disentangle_repro.data import cars3d, load, load_dataset, small_norb
from disentangle_repro.data.official import PUBLISHED
from disentangle_repro.data.sources import Sources

FEW = {
    "cars3d": dataclasses.replace(cars3d.CARS3D, sources=Sources(cars3d.CARS3D.sources.names, (2, 4, 3))),
    "small_norb": dataclasses.replace(
        small_norb.SMALL_NORB, sources=Sources(small_norb.SMALL_NORB.sources.names, (2, 2, 2, 3, 2))
    ),
}


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path))
    for name, scene in FEW.items():
        monkeypatch.setitem(load.GRIDS, name, scene)
    return tmp_path


def greys(name):
    return (4 * np.arange(FEW[name].sources.size) + 3).astype(np.uint8)


def write_matrix(path, matrix):
    magic = {"uint8": 0x1E3D4C55, "int32": 0x1E3D4C54}[matrix.dtype.name]
    header = [magic, matrix.ndim, *matrix.shape, *[1] * (3 - matrix.ndim)]
    path.write_bytes(np.array(header, "<i4").tobytes() + matrix.tobytes())


def published(data, name):
    folder, grey, sources = data / PUBLISHED[name].file, greys(name), FEW[name].scenes(None, 0).numpy()
    if name == "cars3d":
        (folder / "deeper").mkdir(parents=True)
        images = np.broadcast_to(grey.reshape(2, 4, 3, 1, 1, 1), (2, 4, 3, 128, 128, 3)).transpose(2, 3, 4, 5, 1, 0)
        for car, im in enumerate(images):
            savemat(folder / "deeper" / f"cars3d_{car:03}_mesh.mat", {"im": im})
        return folder
    folder.mkdir()
    rows = np.random.default_rng(0).permutation(len(grey))
    images = np.broadcast_to(grey[:, None, None, None], (len(grey), 2, 96, 96))
    for part, some in zip(small_norb.PARTS, (rows[sources[rows, 1] == 0], rows[sources[rows, 1] == 1]), strict=True):
        info = (sources[some, 1:] * [1, 1, 2, 1]).astype("int32")
        for kind, matrix in (("dat", images[some]), ("cat", sources[some, 0].astype("int32")), ("info", info)):
            write_matrix(small_norb.file_of(folder, part, kind), np.ascontiguousarray(matrix))
    return folder


@pytest.mark.parametrize("name", FEW)
def test_a_folder_is_loaded_by_name_and_each_image_has_its_sources(data, name):
    published(data, name)
    loaded, some = load_dataset(name, "official"), load_dataset(name, "official", n=7, seed=1)
    assert loaded.names == FEW[name].sources.names and loaded.images.shape[1:] == (64, 64, 3)
    assert loaded.images.flatten(1).unique(dim=1)[:, 0].tolist() == greys(name).tolist()
    rows = FEW[name].sources.index(some.sources)
    assert some.images[:, 0, 0, 0].tolist() == greys(name)[rows].tolist() and len(some) == 7
    assert loaded.at(loaded.sources[[5, 2]]).equal(loaded.images[[5, 2]])


@pytest.mark.parametrize("name", FEW)
def test_a_folder_that_is_not_there_is_asked_for(data, name):
    with pytest.raises(DataError, match=f"is not there. Please fetch {name.removesuffix('3d')} from http"):
        load_dataset(name, "official")
    with pytest.raises(ValueError, match="only published"):
        load_dataset(name)


def test_the_order_of_axes_is_that_of_the_published_array(data):
    "Row, column, colour, azimuth, elevation: written here by hand, an index at a time."
    (data / "cars").mkdir()
    for car in range(3):
        im = np.zeros((128, 128, 3, 4, 2), np.uint8)
        for azimuth in range(4):
            for elevation in range(2):
                im[:, :, 0, azimuth, elevation] = 10 + 50 * elevation + 10 * azimuth + car
                im[64:, :, 1, azimuth, elevation] = 99
        savemat(data / "cars" / f"{car}_mesh.mat", {"im": im})
        (data / "cars" / f"._{car}_mesh.mat").write_bytes(b"of a Mac")
    loaded = load_dataset("cars3d", "official")
    elevation, azimuth, car = loaded.sources.T
    assert loaded.images[:, 0, 0, 0].equal((10 + 50 * elevation + 10 * azimuth + car).to(torch.uint8))
    assert (loaded.images[:, 60, :, 1] == 99).all() and (loaded.images[:, 3, :, 1] == 0).all()


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        ({"im": np.zeros((128, 128, 3, 2, 4), np.uint8)}, r"'im' is uint8 \(128, 128, 3, 2, 4\) but must be"),
        ({"im": np.zeros((128, 128, 3, 4, 2))}, "'im' is float64"),
        ({"image": np.zeros(3)}, "has no array 'im'"),
    ],
)
def test_a_car_with_other_contents_is_refused_and_nothing_is_left(data, contents, problem):
    folder = published(data, "cars3d")
    savemat(path := folder / "deeper" / "cars3d_001_mesh.mat", contents)
    with pytest.raises(DataError, match=problem) as caught:
        load_dataset("cars3d", "official")
    assert caught.value.path == path and not list(data.glob("official/*"))


def test_a_matrix_file_is_read_as_its_bytes_say(data):
    "The header and order of bytes written by hand: type, number of dimensions, lengths, values."
    path = data / "matrix.mat"
    path.write_bytes(bytes.fromhex("544c3d1e 01000000 02000000 01000000 01000000 07000000 ffffffff"))
    assert small_norb.read_matrix(path, "<i4", None).tolist() == [7, -1]
    path.write_bytes(bytes.fromhex("554c3d1e 03000000 01000000 02000000 03000000 010203040506"))
    assert small_norb.read_matrix(path, "uint8", 1, 2, 3).tolist() == [[[1, 2, 3], [4, 5, 6]]]


def test_two_images_of_one_combination_are_refused(data):
    folder = published(data, "small_norb")
    path = small_norb.file_of(folder, small_norb.PARTS[0], "info")
    info = small_norb.read_matrix(path, "<i4", None, 4).copy()
    info[0] = info[1]
    write_matrix(path, info)
    with pytest.raises(DataError, match="has 4[67] combinations in 48 images but must have 48 in 48"):
        load_dataset("small_norb", "official")


def test_a_packed_file_is_named(data):
    folder = published(data, "small_norb")
    path = small_norb.file_of(folder, small_norb.PARTS[1], "cat")
    path.rename(path.with_name(f"{path.name}.gz"))
    with pytest.raises(DataError, match="is not there; unpack the file that ends in .gz"):
        load_dataset("small_norb", "official")
