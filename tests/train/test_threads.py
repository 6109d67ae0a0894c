"What the number of threads does to a training, and that a measurement fixes it."

import pytest
import torch

from disentangle_repro.core.device import fixed_threads, make_generator, seeded
from disentangle_repro.psa.mixture_experiment import run_experiment
from disentangle_repro.psa.probabilistic_slot_attention import psa_autoencoder


def trained(threads, steps):
    "A small psa autoencoder after some steps on the same four images."
    with fixed_threads(threads), seeded(0):
        model = psa_autoencoder(3, dim=8, image_size=32, width=0.125)
        images = torch.randint(256, (4, 32, 32, 3), dtype=torch.uint8, generator=make_generator(0))
        optimizer, generator = torch.optim.Adam(model.parameters(), lr=1e-3), make_generator(1)
        for _ in range(steps):
            optimizer.zero_grad()
            model.loss(images, generator)[0].backward()
            optimizer.step()
    return model


def weight_difference(one, other):
    a, b = (torch.cat([p.detach().flatten() for p in network.parameters()]) for network in (one, other))
    return ((a - b).abs().max() / a.abs().max()).item()


@pytest.mark.parametrize(("steps", "most"), [(1, 1e-5), (8, 1e-2)])
def test_a_training_repeats_bit_for_bit_on_as_many_threads_and_nearly_on_two(steps, most, record_property):
    one, again, two = (trained(threads, steps) for threads in (1, 1, 2))
    assert weight_difference(one, again) == 0
    difference = weight_difference(one, two)
    record_property("largest difference of a weight, relative", difference)
    print(f"after {steps} steps, two threads against one: {difference:.1e}")
    assert difference <= most


def test_the_measurement_fixes_its_threads_whatever_the_process_has():
    before, found = torch.get_num_threads(), []
    for threads in (1, 2):
        with fixed_threads(threads):
            found.append(run_experiment(2, held_out=20, updates=3, n_sets=20))
            assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == before
    for one, other in zip(*(experiment.models for experiment in found), strict=True):
        assert weight_difference(one, other) == 0
    assert found[0].pairs.equals(found[1].pairs)
    with pytest.raises(ValueError, match="threads is 0"):
        run_experiment(2, threads=0)
