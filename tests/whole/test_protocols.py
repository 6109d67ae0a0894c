"Both readings of the paper, from settings to a trained model."

import pytest
import torch

from disentangle_repro.data import load_dataset
from disentangle_repro.experiment.scale import SCALES
from disentangle_repro.lab.plan.request import Request
from disentangle_repro.lab.plan.specs import rounds, run_spec
from disentangle_repro.models import create_model
from disentangle_repro.papers import PAPERS
from disentangle_repro.train import Training, fit, make_optimizer

NOT_ALIKE = [
    (paper, name)
    for paper in ("qlae", "tripod")
    for name, row in PAPERS[paper].models.items()
    if "weight_decay" not in name and not row.setting.tuned_as
]  # models with and without weight decay are built alike, and so are ablations
FEW = [("qlae", "qlae", "paper"), ("qlae", "qlae", "code"), ("qlae", "qlinfowgan_gp", "paper"),
       ("tripod", "tripod", "code")]  # fmt: skip
CASES = [  # that all take a step under both is in `test_every_step.py`
    case if case in FEW else pytest.param(*case, marks=pytest.mark.whole)
    for case in [(*of, protocol) for of in NOT_ALIKE for protocol in ("paper", "code")]
]


@pytest.mark.parametrize(("paper", "name", "protocol"), CASES)
def test_every_model_learns_under_both_protocols(paper, name, protocol):
    settings = PAPERS[paper].hyperparameters(name, "shapes3d", protocol)
    model = create_model(name, dataset="shapes3d", protocol=protocol, width=0.125, image_size=32, **settings["model"])
    optimizer = make_optimizer(model, **settings["optimizer"])
    images = load_dataset("shapes3d", n=300, image_size=32).images
    training = Training(model, optimizer, images, batch_size=8, seed=0, clip=settings["training"]["clip"])
    curve = fit(training, 40, progress=False)
    learned = "gradient_penalty" if "infowgan" in name else "reconstruction"
    assert curve[-1][learned] < 0.98 * curve[0][learned]
    assert all(torch.isfinite(p).all() for p in model.parameters())


@pytest.mark.parametrize("protocol", ["paper", "code"])
def test_infogans_make_the_steps_of_table_10_and_a_scales_updates_are_rounds(protocol):
    "train_gan.py: num_steps counts 200,000 steps of encoder and critic; one of the generator at every fifth (R1)."
    for name in ("infowgan_gp", "qlinfowgan_gp", "qlinfowgan_gp_no_weight_decay"):
        how = PAPERS["qlae"].hyperparameters(name, "shapes3d", protocol)
        assert how["training"]["steps"] == 200_000 + 40_000
        for scale in ("smoke", "study", "short"):
            spec = run_spec("qlae", name, "shapes3d", Request(SCALES[scale], protocol=protocol))
            critic_steps = how["model"]["critic_steps"]
            steps = create_model(name, dataset="shapes3d", width=0.05, critic_steps=critic_steps).steps()
            generator = sum(step.loss.__name__ == "generator_loss" for step in steps)
            whole, rest = divmod(spec.part("training")["steps"], len(steps))
            autoencoder = run_spec("qlae", "ae", "shapes3d", Request(SCALES[scale], protocol=protocol))
            as_many = 4_000 if scale == "short" else autoencoder.part("training")["steps"]
            assert (generator, rest, whole, rounds(spec)) == (1, 0, as_many, as_many)
