"""Our side of a comparison: weights and random draws put in place, gradients and summaries taken."""

import numpy as np
import parity_numbers as numbers
import torch

from disentangle_repro.nets.style import to_network
from disentangle_repro.train import loop
from disentangle_repro.train.loop import Training
from disentangle_repro.train.optimizer import make_optimizer


def network_images(images):
    "Images as a network takes them, as float32 makes them and then in float64."
    return to_network(images).double()


def give_weights(model, shapes):
    "Give each parameter the fixture's values; they must be of the same names and shapes."
    ours = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    assert ours == shapes, {
        name: (ours.get(name), shapes.get(name))
        for name in ours.keys() | shapes.keys()
        if ours.get(name) != shapes.get(name)
    }
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(numbers.weight(name, shapes[name]))))


def gradients(model, loss):
    "Gradient of each parameter, zeros where there is none."
    names, parameters = zip(*model.named_parameters(), strict=True)
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    pairs = zip(names, parameters, found, strict=True)
    return {name: torch.zeros_like(p) if gradient is None else gradient for name, p, gradient in pairs}


def summaries(arrays):
    return {name: numbers.summary(array.detach().numpy()) for name, array in arrays.items()}


def batches_of(size):
    "The batch of each number, as bytes."
    return lambda number: torch.from_numpy(numbers.images(size, number))


def take_steps(model, batches, draws, betas, settings, monkeypatch, decay_biases, **clipping):
    "Change of each parameter by one step for each batch, with the fixture's rate, clipping and decay."
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    rest = {name: settings[name] for name in ("learning_rate", "weight_decay")}
    optimizer = make_optimizer(model, beta1=betas[0], beta2=betas[1], decay_biases=decay_biases, **rest)
    training = Training(model, optimizer, batches[0], batch_size=1, seed=0, clip=settings["clip"], **clipping)
    queue = iter(batches)
    monkeypatch.setattr(loop, "draw_batch", lambda *rest: next(queue))
    with Draws(*draws):
        for _ in batches:
            training.update()
    return summaries({name: p.detach() - before[name] for name, p in model.named_parameters()})


class Draws:
    "While it lasts, PyTorch draws these numbers, one array after another, in the shapes that are asked for."

    NAMES = ("rand", "randn", "randint")

    def __init__(self, *arrays):
        self.arrays = [torch.from_numpy(np.array(array)) for array in arrays]

    def next(self, *arguments, **options):
        sizes = (argument for argument in arguments if isinstance(argument, tuple | list | torch.Size))
        size = options.get("size") or next(sizes, arguments)
        drawn = self.arrays.pop(0)
        return drawn.reshape(tuple(size))

    def __enter__(self):
        self.before = {name: getattr(torch, name) for name in self.NAMES}
        for name in self.NAMES:
            setattr(torch, name, self.next)
        return self

    def __exit__(self, *exception):
        for name, function in self.before.items():
            setattr(torch, name, function)
        assert exception[0] or not self.arrays, f"{len(self.arrays)} draws are left over"
