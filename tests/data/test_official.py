"Published files: each layout there and back, and whatever is wrong with a file refused, with nothing left of it."

from __future__ import annotations

import dataclasses
import warnings
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pooch
import pytest
import torch
from small_scenes import SMALL
from tqdm import tqdm

from disentangle_repro.core.errors import DataError
from disentangle_repro.data import layouts, load, load_dataset, official
from disentangle_repro.data.falcor3d import FALCOR3D
from disentangle_repro.data.hdf5 import write_images
from disentangle_repro.data.isaac3d import ISAAC3D
from disentangle_repro.data.mpi3d import MPI3D
from disentangle_repro.data.official import DSPRITES, PUBLISHED
from disentangle_repro.data.sources import Sources

# -- a small file in each published layout


def small(scene, *value_counts):
    "A grid of the scene's first sources."
    names, ranges = scene.sources.names[: len(value_counts)], scene.ranges[: len(value_counts)]
    return dataclasses.replace(scene, sources=Sources(names, value_counts), ranges=ranges)


GRIDS = {
    "shapes3d": SMALL,
    "mpi3d": small(MPI3D, 3, 4, 2),
    "mpi3d_toy": small(official.ONLY_PUBLISHED["mpi3d_toy"], 6, 2),
    "dsprites": small(DSPRITES, 3, 6, 2),
    "isaac3d": small(ISAAC3D, 3, 2, 2),
    "falcor3d": small(FALCOR3D, 5, 2, 2),
}
SPLITS = {"train": 18, "validation": 2, "test": 4}
OBJECTS = ("sprites", "clevr6", "clevr", "objects_room")
ARCHIVES = ("mpi3d", "mpi3d_toy", "dsprites", "isaac3d", "falcor3d", "sprites", "clevr6")
ALL = (*GRIDS, *OBJECTS)


def random_images(name):
    "Images, and masks where there are some: bytes of no meaning."
    generator = np.random.default_rng(0)
    if name in GRIDS:
        if name == "shapes3d":
            return SMALL.images(SMALL.sources.factors(torch.arange(128))).numpy(), None
        images = generator.integers(0, 256, (GRIDS[name].sources.size, 64, 64, 3), dtype="uint8")
        return (np.repeat((images[..., :1] > 127) * np.uint8(255), 3, -1) if name == "dsprites" else images), None
    size, objects = PUBLISHED[name].reader_options["image_size"], PUBLISHED[name].reader_options["objects"]
    images = generator.integers(0, 256, (24, size, size, 3), dtype="uint8")
    return images, generator.integers(0, objects + 1, (24, size, size), dtype="uint8")


LATENTS = np.random.default_rng(1).normal(size=(24, 4, 5))


def factors_of(name):
    return GRIDS[name].scenes(None, 0).numpy()


def write_published(name, path, **other):
    "A small file as it would be published; `other` puts something else in place of a part of it."
    images, masks = random_images(name)
    reader, options = PUBLISHED[name].reader, PUBLISHED[name].reader_options
    images, masks = other.get("images", images), other.get("masks", masks)
    if reader is None:
        write_images(path, GRIDS[name], device="cpu")
    elif reader is layouts.read_npz_grid:
        np.savez_compressed(path, images=images)
    elif reader is layouts.read_dsprites:
        classes = np.pad(other.get("labels", factors_of(name)), ((0, 0), (1, 0)))
        images = images if "images" in other else images[..., 0] // 255
        np.savez_compressed(path, imgs=images, latents_classes=classes, latents_values=classes.astype(float))
    elif reader is layouts.read_png_grid:
        steps = factors_of(name) / (np.array(GRIDS[name].sources.value_counts) - 1)
        with zipfile.ZipFile(path, "w") as archive:
            with archive.open(f"{options['folder']}/{options['labels']}", "w") as stream:
                np.save(stream, other.get("labels", steps))
            for row, image in enumerate(images.repeat(2, axis=1).repeat(2, axis=2)):
                with archive.open(f"{options['folder']}/images/{row:06}.png", "w") as stream:
                    layouts.Image.fromarray(image).save(stream, "PNG")
    elif reader is layouts.read_npz_objects:
        np.savez_compressed(path, images, other.get("latents", LATENTS), masks)
    else:
        with h5py.File(path, "w") as file:
            file["image"], file["mask"] = images, masks[..., None]


@pytest.fixture
def data(tmp_path, monkeypatch):
    "A data folder, and small data sets of which checksums are not known."
    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path))
    monkeypatch.setattr(layouts, "BATCH", 8)
    for name, scene in GRIDS.items():
        monkeypatch.setitem(load.GRIDS, name, scene)
    for name, published in PUBLISHED.items():
        splits = SPLITS if published.splits else {}
        monkeypatch.setitem(PUBLISHED, name, dataclasses.replace(published, splits=splits, checksum=None))
    return tmp_path


def published(data, name, **other):
    path = data / PUBLISHED[name].file
    write_published(name, path, **other)
    return path


def refused(data, name, path=None):
    "The problem with a file; nothing may be left of its import."
    path = path or data / PUBLISHED[name].file
    with pytest.raises(DataError) as caught:
        loaded = load_dataset(name, "official")
        loaded.images[:]
    assert caught.value.path == path and str(caught.value).startswith(f"{path}: ")
    assert not list(data.glob("official/*")) and not list(data.glob("official/.*")), "something is left"
    return str(caught.value).removeprefix(f"{path}: ")


# -- there and back


@pytest.mark.parametrize("name", ALL)
def test_there_and_back(data, name):
    path = published(data, name)
    images, masks = random_images(name)
    loaded = load_dataset(name, "official")
    assert loaded.source == "official" and np.array_equal(loaded.images, images)
    if name in GRIDS:
        sources = GRIDS[name].sources
        assert loaded.sources.equal(sources.factors(torch.arange(sources.size))) and loaded.masks is None
        assert (loaded.names, loaded.value_counts) == (sources.names, sources.value_counts)
    else:
        assert np.array_equal(loaded.masks, masks)
        assert loaded.splits == {"train": range(18), "validation": range(18, 20), "test": range(20, 24)}
        latents = LATENTS.reshape(24, 20).astype("float32")[:, : 20 if PUBLISHED[name].file.endswith("npz") else 0]
        assert np.array_equal(loaded.sources, latents)
        assert loaded.names == tuple(f"latent {i}" for i in range(latents.shape[1]))
    if name != "shapes3d":
        path.unlink()
        assert np.array_equal(load_dataset(name, "official").images, images), "imported once"


@pytest.mark.parametrize("name", ALL)
def test_rows_at_random(data, name):
    published(data, name)
    whole, part = load_dataset(name, "official"), load_dataset(name, "official", n=12, seed=5)
    if name in GRIDS:
        rows = GRIDS[name].sources.subset(12, 5)
        assert part.images.equal(whole.images[rows]) and part.sources.equal(whole.sources[rows])
        assert part.at(whole.sources[-3:]).equal(whole.images[-3:]), "also what is not in the subset"
    else:
        assert [len(rows) for rows in part.splits.values()] == [9, 1, 2]
        for split in SPLITS:
            known = {image.numpy().tobytes() for image in whole.split(split).images}
            assert {image.numpy().tobytes() for image in part.split(split).images} <= known


def test_the_import_says_what_it_was_made_from(data):
    path = published(data, "mpi3d")
    load_dataset("mpi3d", "official")
    with h5py.File(data / "official" / "mpi3d.h5") as file:
        assert file.attrs["sha256"] == pooch.file_hash(path, "sha256")
        assert file.attrs["published"] == path.name and file["images"].chunks[0] == 16


def test_an_import_of_another_version_is_made_again(data, monkeypatch):
    published(data, "mpi3d")
    load_dataset("mpi3d", "official")
    published(data, "mpi3d", images=255 - random_images("mpi3d")[0])
    assert np.array_equal(load_dataset("mpi3d", "official").images, random_images("mpi3d")[0])
    monkeypatch.setattr(official, "IMPORT_VERSION", official.IMPORT_VERSION + 1)
    assert np.array_equal(load_dataset("mpi3d", "official").images, 255 - random_images("mpi3d")[0])


# -- files that are refused, and why


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kept", [0, 50, 0.5, -1])
def test_truncated(data, name, kept):
    path = published(data, name)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    assert "not whole" in refused(data, name) or "not a whole one" in refused(data, name)


@pytest.mark.parametrize("name", ARCHIVES)
def test_damaged_members(data, name):
    path = published(data, name)
    with zipfile.ZipFile(path) as archive:
        largest = max(archive.infolist(), key=lambda member: member.compress_size)
    whole = bytearray(path.read_bytes())
    middle = largest.header_offset + largest.compress_size // 2
    whole[middle : middle + 100] = bytes(100)
    path.write_bytes(whole)
    assert refused(data, name).startswith("is damaged or not whole")


@pytest.mark.parametrize("name", ARCHIVES)
def test_missing_members(data, name):
    path = published(data, name)
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    for missing in members if name not in ("isaac3d", "falcor3d") else [*members][:3] + [*members][-1:]:
        with zipfile.ZipFile(path, "w") as archive:
            for member in members:
                if member != missing:
                    archive.writestr(member, members[member])
        if missing == "latents_values.npy":
            load_dataset(name, "official")  # is not read
            next(data.glob("official/*")).unlink()
        else:
            assert refused(data, name) == f"has no member '{missing}'"


@pytest.mark.parametrize("name", ["isaac3d", "falcor3d"])
def test_an_unpacked_folder_will_do_if_it_is_whole(data, name):
    path = published(data, name)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(data)
    path.unlink()
    assert np.array_equal(load_dataset(name, "official").images, random_images(name)[0])
    imported = data / "official" / f"{name}.h5"
    with h5py.File(imported) as file:
        assert file.attrs["sha256"] == ""
    imported.unlink()
    folder = path.with_suffix("")
    image = folder / "images" / "000009.png"
    whole = image.read_bytes()
    image.write_bytes(whole[:-300])
    assert refused(data, name, folder).startswith("is damaged or not whole")
    image.write_bytes(b"GIF89a")
    assert refused(data, name, folder).startswith("is damaged or not whole")
    image.unlink()
    assert refused(data, name, folder) == f"has no member '{folder.name}/images/000009.png'"
    image.write_bytes(whole)
    labels = folder / PUBLISHED[name].reader_options["labels"]
    labels.write_bytes(labels.read_bytes()[:-1])
    assert "ends before row" in refused(data, name, folder)
    labels.unlink()
    assert refused(data, name, folder) == f"has no member '{folder.name}/{labels.name}'"


@pytest.mark.parametrize("name", ARCHIVES)
def test_encrypted_members(data, name):
    path = published(data, name)
    with zipfile.ZipFile(path) as archive:
        first = archive.infolist()[0]
    whole = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # of the first member, and in the table
        whole[whole.index(signature) + flags] |= 1
    path.write_bytes(whole)
    assert refused(data, name) == f"has a member '{first.filename}', which is encrypted"


@pytest.mark.parametrize("name", ["mpi3d", "mpi3d_toy", "sprites", "clevr6", "clevr", "objects_room"])
def test_wrong_images(data, name):
    images = random_images(name)[0]
    published(data, name, images=images / np.float32(255))
    assert "has type float32 but must have uint8" in refused(data, name)
    for wrong in (images[:, :-1], images[..., :1], images.transpose(0, 3, 1, 2), images[:-1]):
        published(data, name, images=wrong)
        assert "has shape" in (problem := refused(data, name)) or f"has {len(wrong)} image" in problem


@pytest.mark.parametrize("name", OBJECTS)
def test_wrong_masks(data, name):
    masks, most = random_images(name)[1], PUBLISHED[name].reader_options["objects"]
    wrong = masks.astype("int64")
    for value in (most + 1, -1, 300):
        wrong[23, 5, 5] = value
        published(data, name, masks=wrong)
        assert f"but there are at most {most} objects" in refused(data, name)
    published(data, name, masks=masks / 2)
    assert "has type float64 but must have uint8 or int8" in refused(data, name)
    published(data, name, masks=masks[:, :-1])
    assert "has shape" in refused(data, name)
    published(data, name, masks=masks[:-1])
    assert "has shape" in (problem := refused(data, name)) or problem == "has 24 image but 23 mask"


@pytest.mark.parametrize("name", ["sprites", "clevr6"])
def test_wrong_latents(data, name):
    published(data, name, latents=LATENTS[:-1])
    assert "'arr_1.npy' has shape (23, 4, 5) but must have (24, any) or (24, any, any)" in refused(data, name)
    published(data, name, latents=np.array([{}] * 24))
    assert "'arr_1.npy' has type object but must have number" in refused(data, name)
    latents = LATENTS.copy()
    latents[3, 1, 2] = np.nan
    published(data, name, latents=latents)
    assert refused(data, name) == "column 7 of 'labels' is nan in row 3: out of range"


@pytest.mark.parametrize("name", ["clevr", "objects_room"])
@pytest.mark.parametrize("key", ["image", "mask"])
def test_missing_keys(data, name, key):
    path = published(data, name)
    with h5py.File(path, "a") as file:
        del file[key]
    assert refused(data, name) == f"has no data set '{key}'"


def test_dsprites_with_faults(data):
    factors = factors_of("dsprites")
    for value in (3, -1):
        wrong = factors.copy()
        wrong[17, 0] = value
        published(data, "dsprites", labels=wrong)
        problem = f"column 1 of 'latents_classes' is {value} in row 17 but must be from 0 to 2"
        assert refused(data, "dsprites") == problem
    published(data, "dsprites", labels=factors[::-1].copy())
    assert "rows are out of order" in refused(data, "dsprites")
    published(data, "dsprites", labels=factors[:, :2])
    assert "'latents_classes.npy' has shape (36, 3) but must have (36, 4)" in refused(data, "dsprites")
    published(data, "dsprites", labels=factors / 2)
    assert "has type float64 but must have int64 or int32" in refused(data, "dsprites")
    images = np.ones((36, 64, 64), "uint8")
    images[20, 3, 3] = 2
    published(data, "dsprites", images=images)
    assert refused(data, "dsprites") == "'imgs' holds 2 among rows 16 to 23: must be 0 or 1"
    published(data, "dsprites", images=images[:, :32])
    assert "'imgs.npy' has shape (36, 32, 64) but must have (36, 64, 64)" in refused(data, "dsprites")


@pytest.mark.parametrize("name", ["isaac3d", "falcor3d"])
def test_png_grids_with_wrong_labels(data, name):
    sources = GRIDS[name].sources
    steps = factors_of(name) / (np.array(sources.value_counts) - 1)
    first, count = sources.names[0], sources.value_counts[0]
    wrong = steps.copy()
    wrong[-1, 0] = 2
    published(data, name, labels=wrong)
    assert refused(data, name) == (
        f"column 0 of the labels ({first}) has {count + 1} different values but must have {count} values"
    )
    published(data, name, labels=np.where(steps == 1, np.nan, steps))
    assert "has values that are no numbers" in refused(data, name)
    published(data, name, labels=steps[:, [0, 2, 1]])
    assert "rows are out of order, or columns are swapped" in refused(data, name)
    published(data, name, labels=np.asfortranarray(steps))
    assert len(load_dataset(name, "official").images) == len(steps), "labels may be stored column by column"
    next(data.glob("official/*")).unlink()
    published(data, name, labels=steps[:-1])
    assert "has shape" in refused(data, name)
    published(data, name, labels=steps.astype("float32"))
    assert "has type float32 but must have float64" in refused(data, name)


def test_png_images_of_another_size(data):
    published(data, "isaac3d", images=np.zeros((12, 32, 32, 3), "uint8"))
    assert refused(data, "isaac3d") == (
        "'Isaac3D_down128/images/000000.png' is RGB of size (64, 64) but must be RGB of (128, 128)"
    )
    published(data, "isaac3d", images=np.zeros((12, 64, 64), "uint8"))
    assert "is L of size (128, 128) but must be RGB" in refused(data, "isaac3d")


def test_arrays_in_strange_forms(data):
    path = data / PUBLISHED["mpi3d"].file
    images = random_images("mpi3d")[0]
    np.savez(path, images=np.asfortranarray(images))
    assert "is stored column by column" in refused(data, "mpi3d")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", b"no array at all")
    assert refused(data, "mpi3d").startswith("'images.npy' is no numpy array")
    with zipfile.ZipFile(path, "w") as archive, archive.open("images.npy", "w") as stream:
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(images))
        stream.write(images.tobytes()[:-1])
    assert refused(data, "mpi3d") == "'images.npy' ends before row 24 of 24"


def test_a_pickle_is_never_loaded(data):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (data / "sprung",))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trap = np.array([Trap()] * 24, dtype=object)
    published(data, "sprites", latents=trap)
    assert "has type object" in refused(data, "sprites")
    assert not (data / "sprung").exists()


@pytest.mark.parametrize("name", [name for name in ALL if name != "shapes3d"])
@pytest.mark.parametrize("fault", [KeyboardInterrupt(), MemoryError(), OSError(28, "No space left on device")])
def test_an_interrupted_import_leaves_nothing(data, name, fault, monkeypatch):
    published(data, name)

    class Bar(tqdm):
        def update(self, n=1):
            super().update(n)
            raise fault

    with monkeypatch.context() as patch, pytest.raises(type(fault)):
        patch.setattr(official, "bar", Bar)
        load_dataset(name, "official")
    assert not list(data.glob("official/*"))
    assert np.array_equal(load_dataset(name, "official").images, random_images(name)[0])


# -- finding and downloading


@pytest.mark.parametrize("name", [name for name, published in PUBLISHED.items() if published.checksum is None])
def test_what_cannot_be_downloaded_is_asked_for(tmp_path, monkeypatch, name):
    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path))
    monkeypatch.setattr(pooch, "retrieve", lambda *_, **__: pytest.fail("downloaded"))
    with pytest.raises(DataError) as caught:
        load_dataset(name, "official", n=5)
    file, address = PUBLISHED[name].file, PUBLISHED[name].address
    assert str(caught.value).startswith(f"{tmp_path / file}: is not there. Please fetch {file} from {address}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name, published in PUBLISHED.items() if published.checksum is not None])
def test_a_failed_download_says_what_to_fetch(tmp_path, monkeypatch, name):
    def no_network(*arguments, **options):
        raise OSError("no route to host")

    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path))
    monkeypatch.setattr(pooch, "retrieve", no_network)
    with pytest.raises(DataError) as caught:
        load_dataset(name, "official", n=5)
    for part in (str(tmp_path / PUBLISHED[name].file), "no route", PUBLISHED[name].address, PUBLISHED[name].checksum):
        assert part in str(caught.value)


def serve(monkeypatch, content):
    "Downloads give this."

    def copy(url, output_file, downloader):
        Path(output_file).write_bytes(content)

    monkeypatch.setattr(pooch, "HTTPDownloader", lambda **_: copy)


def test_a_download_with_another_checksum_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("DISENTANGLE_DATA", str(tmp_path))
    serve(monkeypatch, b"not the published file")
    for name in ("shapes3d", "clevr"):
        with pytest.raises(DataError, match="hash"):
            load_dataset(name, "official", n=5)
    assert not list(tmp_path.iterdir())


def test_a_download_with_the_checksum_is_imported(data, monkeypatch):
    path = published(data, "mpi3d_toy")
    content, checksum = path.read_bytes(), f"md5:{pooch.file_hash(path, 'md5')}"
    path.unlink()
    serve(monkeypatch, content)
    monkeypatch.setitem(PUBLISHED, "mpi3d_toy", dataclasses.replace(PUBLISHED["mpi3d_toy"], checksum=checksum))
    assert np.array_equal(load_dataset("mpi3d_toy", "official").images, random_images("mpi3d_toy")[0])
    assert path.read_bytes() == content


@pytest.mark.parametrize("kind", ["md5", "sha256"])
def test_a_file_put_there_by_hand_is_compared_with_the_checksum(data, monkeypatch, kind):
    path = published(data, "mpi3d_toy")
    known = dataclasses.replace(PUBLISHED["mpi3d_toy"], checksum=f"{kind}:{'0' * 32}")
    monkeypatch.setitem(PUBLISHED, "mpi3d_toy", known)
    problem = f"has {kind} {pooch.file_hash(path, kind)} but the published file has {'0' * 32}"
    assert refused(data, "mpi3d_toy") == problem


def test_the_grids_have_the_published_sizes():
    sizes = {name: scene.sources.size for name, scene in load.GRIDS.items()}
    assert sizes == {
        "shapes3d": 480_000, "mpi3d": 460_800, "falcor3d": 233_280, "isaac3d": 737_280, "dsprites": 737_280,
        "mpi3d_toy": 1_036_800, "mpi3d_realistic": 1_036_800, "mpi3d_real": 1_036_800, "cars3d": 17_568,
        "small_norb": 48_600,
    }  # fmt: skip


def test_what_is_not_available_is_named(data, monkeypatch):
    published(data, "mpi3d")
    monkeypatch.setattr(pooch, "retrieve", lambda *_, **__: pytest.fail("downloaded"))
    missing = official.not_available(["mpi3d", "isaac3d", "gmm2d"])
    assert missing.keys() == {"isaac3d"} and "Please fetch Isaac3D_down128.zip" in missing["isaac3d"]
