"The operations of an update can be counted of models whose first slots are parameters or drawn."

import pytest
import torch

from disentangle_repro.models import create_model
from disentangle_repro.train import Training, make_optimizer
from disentangle_repro.train.speed import step_operations


@pytest.mark.parametrize("name", ["psa", "transformer-transformer-rec_kl_interact"])
def test_operations_of_slot_models_grow_with_the_batch(name):
    model = create_model(name, dataset="sprites", width=0.25, image_size=16)
    optimizer = make_optimizer(model, learning_rate=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.0)
    images = torch.zeros(8, 16, 16, 3, dtype=torch.uint8)
    two, four = (step_operations(Training(model, optimizer, images, batch_size=n, seed=0)) for n in (2, 4))
    assert 1.9 * two < four <= 2 * two
