"Rows of compressed files: unpacked by several threads, the same as hdf5 reads them, and refused where damaged."

import threading
import zlib

import h5py
import numpy as np
import pytest
import torch

from disentangle_repro.core.device import fixed_threads
from disentangle_repro.core.errors import DataError
from disentangle_repro.data import hdf5
from disentangle_repro.data.hdf5 import OnDisk, read_rows

IMAGES = np.random.default_rng(0).integers(256, size=(50, 8, 8, 3), dtype="uint8")
KINDS = {
    "gzip": {"chunks": (16, 8, 8, 3), "compression": "gzip"},
    "filtered besides": {"chunks": (16, 8, 8, 3), "compression": "gzip", "shuffle": True, "fletcher32": True},
    "rows in parts": {"chunks": (16, 8, 4, 3), "compression": "gzip"},
    "not compressed": {"chunks": (16, 8, 8, 3)},
    "not in chunks": {},
}


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "images.h5", "w") as file:
        for name, options in KINDS.items():
            file.create_dataset(name, data=IMAGES, **options)
    return tmp_path / "images.h5"


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("name", KINDS)
def test_rows_are_those_of_the_file_in_any_order(path, name, threads):
    rows = np.array([49, 3, 3, 17, 0, 48, 16, 15])
    with h5py.File(path) as file, fixed_threads(threads):
        assert np.array_equal(read_rows(file[name], rows), IMAGES[rows])
        assert np.array_equal(read_rows(file[name], np.arange(50)), IMAGES)
        assert read_rows(file[name], rows[:0]).shape == (0, 8, 8, 3)


def test_chunks_are_unpacked_side_by_side(path, monkeypatch):
    "All four chunks are begun before one of them is done."
    together, unpack, by = threading.Barrier(4), zlib.decompress, set()

    def unpack_together(stored):
        together.wait(20)
        by.add(threading.get_ident())
        return unpack(stored)

    monkeypatch.setattr(hdf5.zlib, "decompress", unpack_together)
    with fixed_threads(4):
        assert OnDisk(path, "gzip")[torch.arange(50)].equal(torch.from_numpy(IMAGES))
    assert len(by) == 4


def test_a_chunk_that_was_left_as_it_is(tmp_path):
    "hdf5 stores a chunk without its filter where that has failed."
    with h5py.File(tmp_path / "raw.h5", "w") as file:
        raw = file.create_dataset("images", IMAGES.shape, "uint8", **KINDS["gzip"])
        for first in range(0, 50, 16):
            part = np.zeros((16, 8, 8, 3), "uint8")
            part[: 50 - first] = IMAGES[first : first + 16]
            raw.id.write_direct_chunk((first, 0, 0, 0), part.tobytes(), filter_mask=1)
    assert OnDisk(tmp_path / "raw.h5", "images")[torch.arange(50)].equal(torch.from_numpy(IMAGES))


def test_a_damaged_chunk_is_refused(path):
    with h5py.File(path) as file:
        place = file["gzip"].id.get_chunk_info(2)
    content = bytearray(path.read_bytes())
    content[place.byte_offset + place.size // 2] ^= 255
    path.write_bytes(bytes(content))
    assert OnDisk(path, "gzip")[:16].equal(torch.from_numpy(IMAGES[:16]))
    with pytest.raises(DataError, match="chunk 2 of /gzip is damaged"):
        OnDisk(path, "gzip")[:]
