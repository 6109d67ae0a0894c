"Models go into a folder and come back the same; what is no such folder is refused and named."

import json
import pickle
from pathlib import Path

import pytest
import torch

from disentangle_repro.models import create_model
from disentangle_repro.saved_models import CARD, WEIGHTS, load_model, save_model

QLAE = {"name": "qlae", "dataset": "shapes3d", "net": "paper", "width": 0.125, "seed": 3, "n_values": 7}
SEVERAL = {
    "qlae": QLAE,
    "tripod": {"name": "tripod", "dataset": "shapes3d", "net": "code", "width": 0.125},
    "factorqvae": {"name": "factorqvae", "dataset": "shapes3d", "width": 0.125},
    "infowgan_gp": {"name": "infowgan_gp", "dataset": "shapes3d", "width": 0.125},
    "psa": {"name": "psa", "dataset": "sprites", "width": 0.25, "dim": 16},
}


def trained(arguments):
    "A model away from where it started."
    model, generator = create_model(**arguments), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return model


@pytest.fixture
def folder(tmp_path):
    save_model(trained(QLAE), tmp_path / "model", **QLAE)
    return tmp_path / "model"


@pytest.mark.parametrize("arguments", SEVERAL.values(), ids=SEVERAL)
def test_a_model_comes_back_the_same(tmp_path, arguments):
    model = trained(arguments)
    save_model(model, tmp_path, **arguments)
    again = load_model(str(tmp_path))
    assert type(again) is type(model)
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True))
    images = torch.randint(256, (2, 64, 64, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(model.eval().encode(images), again.eval().encode(images))
    assert sorted(path.name for path in tmp_path.iterdir()) == [CARD, WEIGHTS]


def test_the_card_says_how_the_model_was_made(folder):
    card = json.loads((folder / CARD).read_text())
    assert card == {k: v for k, v in QLAE.items() if k != "n_values"} | {"hyperparameters": {"n_values": 7}}


def test_saving_again_replaces(folder):
    fresh = create_model(**QLAE)
    save_model(fresh, folder, **QLAE)
    assert torch.equal(next(load_model(folder).parameters()), next(fresh.parameters()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_values": 9}, "model is not the qlae that these arguments make"),
        ({"width": 0.25}, "model is not the qlae"),
        ({"commit": 5.0}, "weights is {.*'commit': 0.01} but must be {.*'commit': 5.0}"),
        ({"name": "qlae_late_decay"}, "class is 'QLAE' but must be 'VariedQLAE'"),
        ({"name": "qlea"}, "name is 'qlea' but must be one of"),
        ({"n_values": (7,)}, r"n_values is \(7,\): needed is what JSON gives back"),
        ({"n_values": torch.tensor(7)}, "n_values is tensor"),
    ],
)
def test_what_would_not_come_back_is_not_written(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        save_model(trained(QLAE), tmp_path / "new", **QLAE | change)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "lost", "message"),
    [
        ({"name": "monet", "dataset": "sprites"}, {"scales": [0.2, 0.3]}, r"deviations is \[0.2, 0.3\]"),
        ({"name": "psa", "dataset": "sprites", "dim": 16}, {"iterations": 4}, "latent.iterations is 4 but must be"),
        ({"name": "tripod", "dataset": "shapes3d"}, {"epsilon": 0.2}, "epsilon is 0.2 but must be 0.1"),
    ],
)
def test_a_hyperparameter_that_no_tensor_shows_is_not_lost(tmp_path, arguments, lost, message):
    arguments = arguments | {"width": 0.125}
    with pytest.raises(ValueError, match=message):
        save_model(create_model(**arguments, **lost), tmp_path, **arguments)


@pytest.mark.parametrize(
    ("name", "dataset"),
    [("factorqvae", "shapes3d"), ("qlae_annealed_both", "shapes3d"), ("transformer-transformer-rec_kl", "sprites")],
)
def test_a_model_is_saved_wherever_its_schedules_are(tmp_path, name, dataset):
    model = create_model(name, dataset=dataset, width=0.125).eval()
    model.anneal(0.03)
    save_model(model, tmp_path, name=name, dataset=dataset, width=0.125)
    assert type(load_model(tmp_path)) is type(model)


class Loud:
    def __reduce__(self):
        return Path.touch, (Path("opened"),)


def test_pickles_are_not_opened(folder, monkeypatch):
    monkeypatch.chdir(folder)
    torch.save({"weights": Loud()}, folder / WEIGHTS)
    with pytest.raises(ValueError, match=f"{WEIGHTS}: .* nothing else is opened"):
        load_model(folder)
    (folder / WEIGHTS).write_bytes(pickle.dumps(Loud()))
    with pytest.raises(ValueError, match=f"{WEIGHTS}: .* nothing else is opened"):
        load_model(folder)
    assert not (folder / "opened").exists()


@pytest.mark.parametrize("name", [WEIGHTS, CARD])
def test_a_file_that_is_missing_or_cut_is_named(folder, name):
    contents = (folder / name).read_bytes()
    for part in (contents[: len(contents) // 2], contents[:4], b""):
        (folder / name).write_bytes(part)
        with pytest.raises(ValueError, match=name):
            load_model(folder)
    (folder / name).unlink()
    with pytest.raises(ValueError, match=name):
        load_model(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hyperparameters": {"n_values": 9}}, f"{WEIGHTS}: does not belong to the card"),
        ({"hyperparameters": {"colour": 9}}, f"{CARD}: describes no model"),
        ({"name": "qlea"}, f"{CARD}: describes no model: name is 'qlea'"),
        ({"width": "wide"}, f"{CARD}: width is 'wide'"),
        ({"more": 1}, f"{CARD}: holds .*'more'.*: needed are name, dataset"),
    ],
)
def test_a_card_of_something_else_is_refused(folder, change, message):
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps(card | change))
    with pytest.raises(ValueError, match=message):
        load_model(folder)


def test_a_card_that_is_no_card_is_refused(folder):
    for text in ("[]", "3", "null"):
        (folder / CARD).write_text(text)
        with pytest.raises(ValueError, match=CARD):
            load_model(folder)
