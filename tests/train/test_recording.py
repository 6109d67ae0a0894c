"What `CudaGraphStep` asks of CUDA's streams and graphs, with stand-ins for them: recording itself needs a GPU."

from contextlib import contextmanager

import pytest
import torch
from torch import nn

from disentangle_repro.baselines.autoencoder import Autoencoder
from disentangle_repro.core.device import seeded
from disentangle_repro.qlae import LatentQuantizer
from disentangle_repro.train import Training, make_optimizer
from disentangle_repro.train.loop import CudaGraphStep


class Stream:
    made = 0

    def __init__(self):
        type(self).made += 1

    def wait_stream(self, other):
        pass


class Cuda:
    "Streams, of which one is current, and recordings that break off as CUDA's do."

    def __init__(self):
        self.current, self.recording, self.used = Stream(), False, []
        Stream.made = 0

    @contextmanager
    def stream(self, stream):
        before, self.current = self.current, stream
        self.used.append(stream)
        try:
            yield
        finally:
            self.current = before

    @contextmanager
    def graph(self, graph):
        self.current, self.recording = Stream(), True
        try:
            yield
        except RuntimeError:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")  # noqa: B904
        finally:
            self.recording = False


class Graph:
    def register_generator_state(self, generator):
        pass


@pytest.fixture
def cuda(monkeypatch) -> Cuda:
    cuda = Cuda()
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "stream", cuda.stream)
    monkeypatch.setattr(torch.cuda, "graph", cuda.graph)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: cuda.current)
    return cuda


class ReadsBack(Autoencoder):
    "Its loss draws, and then reads a value back, which cannot be recorded."

    cuda: Cuda

    def loss(self, images, generator=None):
        noise = torch.rand((), generator=generator)
        if self.cuda.recording:
            raise RuntimeError("a value is read back")
        loss, terms = super().loss(images, generator)
        return loss * (1 + noise), terms


def new_training(cuda: Cuda) -> Training:
    with seeded(0):
        encoder = nn.Sequential(nn.Flatten(), nn.Linear(192, 4))
        decoder = nn.Sequential(nn.Linear(4, 192), nn.Unflatten(1, (3, 8, 8)))
        model = ReadsBack(encoder, decoder, LatentQuantizer(4), {"quantize": 0.01, "commit": 0.01})
    model.cuda = cuda
    images = torch.randint(256, (32, 8, 8, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    optimizer = make_optimizer(model, learning_rate=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.1)
    return Training(model, optimizer, images, batch_size=4, seed=0)


def test_all_warm_up_updates_share_one_stream(cuda):
    step = CudaGraphStep(new_training(cuda))
    step.on_cuda = True
    for _ in range(3):
        step()
    assert Stream.made == 1 and len(cuda.used) == 3 and len({id(stream) for stream in cuda.used}) == 1


def test_where_recording_fails_the_cause_is_said_and_updates_are_called(cuda):
    called, stepped = new_training(cuda), new_training(cuda)
    step, before, current = CudaGraphStep(stepped), stepped.generator, cuda.current
    step.on_cuda = True
    for number in range(8):
        called.prepare()
        expected = called.update()
        if number == step.WARM_UP:
            with pytest.warns(UserWarning, match="could not be recorded.*RuntimeError: a value is read back"):
                terms = step()
        else:
            terms = step()
        assert terms["loss"].equal(expected["loss"]) and stepped.updates == called.updates
    assert cuda.current is current and stepped.generator is not before
    assert stepped.generator.get_state().equal(called.generator.get_state())
    for ours, theirs in zip(called.model.parameters(), stepped.model.parameters(), strict=True):
        assert ours.equal(theirs)
