"What `fit_images` says of images and numbers in another form."

import numpy as np
import pandas as pd
import pytest
import torch

from disentangle_repro.data.load import Dataset
from disentangle_repro.metrics import mse, psnr
from disentangle_repro.models import create_model
from disentangle_repro.train import fit_images, log_to_csv

IMAGES = np.zeros((4, 16, 16, 3), dtype=np.uint8)
OWN = Dataset("own", "own", torch.from_numpy(IMAGES), torch.zeros(4, 1, dtype=torch.long), ("x",))


@pytest.fixture(scope="module")
def model():
    return create_model("ae", n_latents=2, image_size=16, width=0.1)


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (list(IMAGES), "images is of type list but must be an array or a tensor."),
        (OWN, "images is of type Dataset but must be an array or a tensor: give its images."),
        (IMAGES / 255, "of 1 or 3 channels: round 255 times numbers from 0 to 1."),
        (IMAGES.transpose(0, 3, 1, 2), "of 1 or 3 channels: move axis 1 to the end."),
        (torch.rand(4, 3, 16, 16), "channels: round 255 times numbers from 0 to 1, move axis 1 to the end."),
        (IMAGES[..., 0], "channels: add an axis of size 1, last for channels or first for a single image."),
        (IMAGES[..., :1], "images are of 1 channels but the encoder takes 3."),
    ],
)
def test_images_of_another_form_are_refused_with_the_way_to_convert_them(model, images, said):
    with pytest.raises(ValueError) as error:
        fit_images(model, images, updates=1, progress=False)
    assert str(error.value).endswith(said)


def test_bytes_of_0_and_1_are_refused(model):
    "They were read as nearly black: an image and its negative had a PSNR of 48 dB."
    binary = (np.random.default_rng(0).random(IMAGES.shape) > 0.7).astype(np.uint8)
    for call in (
        lambda: fit_images(model, binary, updates=1, progress=False),
        lambda: model.encode(torch.from_numpy(binary)),
        lambda: psnr(binary, 1 - binary),
        lambda: mse(binary, 1 - binary),
    ):
        with pytest.raises(ValueError, match="images holds bytes of 0 and 1, but white is 255: multiply them by 255"):
            call()
    assert psnr(255 * binary, 255 - 255 * binary) == 0
    assert model.encode(torch.from_numpy(binary).float()).isfinite().all()


@pytest.mark.parametrize(
    ("name", "value"), [("updates", 2.5), ("updates", "2"), ("updates", -1), ("batch_size", 8.0), ("batch_size", 0)]
)
def test_numbers_of_updates_and_images_are_integers(model, name, value):
    with pytest.raises(ValueError, match=f"{name} is {value!r} but must be an integer of at least"):
        fit_images(model, IMAGES, **{"updates": 1, name: value}, progress=False)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("lr", "learning_rate"), ("epochs", "updates"), ("betas", "beta1 and beta2"), ("check_point", "checkpoint")],
)
def test_an_argument_of_another_name_is_refused_with_its_name_here(model, given, meant):
    with pytest.raises(TypeError, match=f"has no argument '{given}': did you mean {meant}.* It takes model,"):
        fit_images(model, IMAGES, updates=1, **{given: 1})


def test_each_point_of_the_curve_is_logged_when_it_is_made(model, tmp_path):
    points, path = [], tmp_path / "curve.csv"
    logs = [points.append, log_to_csv(path)]
    curve = fit_images(model, IMAGES, updates=4, batch_size=2, log_every=2, on_log=logs, progress=False)
    assert points == curve and len(curve) == 2
    for row, point in zip(pd.read_csv(path).to_dict("records"), curve, strict=True):
        assert row == pytest.approx(point)


@pytest.mark.parametrize(
    ("name", "settings", "decay"), [("qlae", None, 0.1), ("qlae_no_weight_decay", None, 0.0), ("qlae", "ae", None)]
)
def test_a_model_by_name_is_trained_as_its_paper_trains_it(name, settings, decay, capsys):
    "QLAE without weight decay is the paper's ablation, which `fit_images` trained without a word."
    model = create_model(name, n_latents=2, image_size=16, width=0.1)
    fit_images(model, IMAGES, updates=1, batch_size=2, settings=settings)
    said = capsys.readouterr().err
    assert f"Settings of {settings or name} in qlae, for shapes3d: learning_rate" in said and "batch_size 2" in said
    assert decay is None or f"weight_decay {decay:g}" in said
    with pytest.raises(ValueError, match="settings is 'qlea' but must be one of .* Did you mean 'qlae'"):
        fit_images(model, IMAGES, updates=1, settings="qlea")
