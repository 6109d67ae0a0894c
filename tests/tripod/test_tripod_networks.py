"All models of tripod's tables have its residual networks, under both protocols."

import pytest

from disentangle_repro.models import create_model
from disentangle_repro.nets.residual import ResidualDecoder, ResidualEncoder
from disentangle_repro.tripod.settings import SETTINGS


@pytest.mark.parametrize("protocol", ["paper", "code"])
@pytest.mark.parametrize("name", SETTINGS)
def test_every_model_of_the_tables_has_residual_networks(name, protocol):
    own = SETTINGS[name].hyperparameters("shapes3d", protocol)["model"]
    model = create_model(name, dataset="shapes3d", protocol=protocol, width=0.03, **own)
    assert isinstance(model.encoder, ResidualEncoder) and isinstance(model.decoder, ResidualDecoder)
