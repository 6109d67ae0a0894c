"""A captured step on the CPU: its operations are recorded, undone, and replayed into the same storages.

`CudaGraphStep` runs as it is; CUDA's graph and streams are replaced. As on CUDA, a record has Python's numbers as they
were, and capture breaks off at an operation whose value the host needs, or that draws from a generator that is not
registered. Not seen are tensors on different devices (by `whole/test_every_step.py` they are), and what is read from a
tensor that belongs on the host.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tag, Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from disentangle_repro.train import Training, make_optimizer
from disentangle_repro.train.loop import CudaGraphStep

aten = torch.ops.aten
INDEXED = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_, aten._unsafe_index}
READ_BACK = {Tag.data_dependent_output, Tag.dynamic_output_shape}  # as PyTorch tags its operations


def alias(part: Any) -> Any:
    "A tensor with the same storage, whose shape does not change with the original's; anything else as it is."
    return part.detach() if isinstance(part, Tensor) else part


def storage_of(tensor: Tensor) -> int:
    "The same for two tensors that share memory."
    return tensor.untyped_storage()._cdata


def tensors_in(parts: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(parts) if isinstance(leaf, Tensor)]


def is_read_back(operation: torch._ops.OpOverload, given: dict[str, Any]) -> bool:
    "Whether the host has to wait for a value, or copies one to the device, which capture forbids."
    if operation.overloadpacket in INDEXED:  # the shape of what a mask selects is a value
        return any(index.dtype in (torch.bool, torch.uint8) for index in tensors_in(given["indices"]))
    return operation.overloadpacket is aten.lift_fresh or not READ_BACK.isdisjoint(operation.tags)


def arguments(operation: torch._ops.OpOverload, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    "What an operation is given, by name, defaults among it."
    schema = operation._schema.arguments
    return {a.name: a.default_value for a in schema} | dict(zip((a.name for a in schema), args, strict=False)) | kwargs


def written(operation: torch._ops.OpOverload, given: dict[str, Any]) -> list[Tensor]:
    "The arguments that an operation changes in place."
    schema = operation._schema.arguments
    return tensors_in([given[a.name] for a in schema if a.alias_info is not None and a.alias_info.is_write])


class Recording(TorchDispatchMode):
    "Operations in their order, with what they were given and returned; `RuntimeError` for what CUDA refuses."

    def __init__(self, registered: list[torch.Generator]):
        super().__init__()
        self.registered = {generator._cdata for generator in registered}
        self.operations, self.made, self.before, self.states = [], {}, {}, {}

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = arguments(operation, args, kwargs)
        if is_read_back(operation, given):
            raise RuntimeError(f"{operation} needs a value on the host, which is not there during capture.")
        self._keep_what_changes(operation, given)
        given = tree_map(alias, (args, kwargs))
        result = operation(*args, **kwargs)
        if Tag.inplace_view in operation.tags:  # changes a shape and no value
            return result
        old = {storage_of(tensor) for tensor in tensors_in(given)}
        self.made |= {storage_of(t): t.untyped_storage() for t in tensors_in(result) if storage_of(t) not in old}
        self.operations.append((operation, *given, tree_map(alias, result)))
        return result

    def _keep_what_changes(self, operation, given) -> None:
        for generator in [leaf for leaf in tree_leaves(given) if isinstance(leaf, torch.Generator)]:
            if generator._cdata not in self.registered:
                raise RuntimeError(f"{operation} draws from a generator that was not registered with the graph.")
            self.states.setdefault(generator._cdata, (generator, generator.get_state()))
        for tensor in written(operation, given):
            key, storage = storage_of(tensor), tensor.untyped_storage()
            if key not in self.made and key not in self.before:
                self.before[key] = storage, storage.clone()

    def undo(self) -> None:
        "Restore all that was there before: capturing executes nothing."
        for storage, values in self.before.values():
            storage.copy_(values)
        for generator, state in self.states.values():
            generator.set_state(state)

    def replay(self) -> None:
        "Execute the operations again, each into the memory of what it returned."
        with torch.no_grad():
            for operation, args, kwargs, recorded in self.operations:
                result = operation(*args, **kwargs)
                for into, new in zip(tensors_in(recorded), tensors_in(result), strict=True):
                    if storage_of(into) != storage_of(new):
                        self.store(new, into)

    @staticmethod
    def store(result: Tensor, into: Tensor) -> None:
        into.copy_(result)


class HostReads(TorchFunctionMode):
    "Refuses the ways to a CPU tensor's values that are no operation; what is made for the host is not recorded."

    READS = Tensor.tolist, Tensor.numpy, Tensor.cpu, Tensor.__array__

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        on_host = any(isinstance(part, str) and part == "cpu" for part in (*args, *kwargs.values()))
        if function in self.READS or function is Tensor.to and on_host:
            raise RuntimeError(f"{function.__name__} needs a value on the host, which is not there during capture.")
        with _disable_current_modes() if function is torch.tensor and on_host else nullcontext():
            return function(*args, **kwargs)


class Graph:
    "As `torch.cuda.CUDAGraph`."

    def __init__(self):
        self.generators, self.replays, self.recording = [], 0, None

    def register_generator_state(self, generator: torch.Generator) -> None:
        self.generators.append(generator)

    def replay(self) -> None:
        self.replays += 1
        self.recording.replay()


class Stream:
    "As `torch.cuda.Stream`."

    def wait_stream(self, other) -> None:
        pass


class Cuda:
    "Streams, of which one is current; captures that break off as CUDA's do, with another error, in another stream."

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.current, self.made, self.used = Stream(), [], []
        names = {"Stream": self.new_stream, "stream": self.stream, "graph": self.graph, "CUDAGraph": Graph}
        for name, of in (names | {"current_stream": lambda: self.current}).items():
            monkeypatch.setattr(torch.cuda, name, of)

    def new_stream(self) -> Stream:
        self.made.append(Stream())
        return self.made[-1]

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        before, self.current = self.current, stream
        self.used.append(stream)
        try:
            yield
        finally:
            self.current = before

    @contextmanager
    def graph(self, graph: Graph) -> Iterator[None]:
        before, self.current = self.current, Stream()
        graph.recording = Recording(graph.generators)
        try:
            with HostReads(), graph.recording:
                yield
            self.current = before
        except RuntimeError:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")  # noqa: B904
        finally:
            graph.recording.undo()


def unchecked(scales: Tensor, latents: Tensor) -> Tensor:
    "As `check_scales` does on a CUDA device, where a sign would be read back."
    return scales


def pretended_cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    "Capture on the CPU, of what `assemble`, the model and the optimiser do on a CUDA device."
    instead = {
        ("torch.optim.rmsprop", "_get_capturable_supported_devices"): lambda *_, **__: ["cpu"],
        ("torch.optim.optimizer", "_get_foreach_kernels_supported_devices"): lambda: ["cpu"],
        ("disentangle_repro.lab.runs.assemble", "make_optimizer"): partial(make_optimizer, capturable=True),
        ("disentangle_repro.tripod.kernel_multiinformation", "check_scales"): unchecked,
    }
    for (module, name), of in instead.items():  # a package may have a function of its module's name
        monkeypatch.setattr(import_module(module), name, of)
    return Cuda(monkeypatch)


def check_same(called: Any, replayed: Any, what: str) -> None:
    "`AssertionError` where two collections of tensors are not the same bits."
    pairs = list(zip(tree_leaves(called), tree_leaves(replayed), strict=True))
    different = sum(not ours.equal(theirs) for ours, theirs in pairs if isinstance(ours, Tensor))
    assert different == 0, f"{different} of {len(pairs)} {what} differ between called and replayed updates"


def rehearse(make: Callable[[], Training], updates: int) -> None:
    """Train twice from one start, once with updates called and once with updates replayed.

    `AssertionError` where a term of the loss, a weight, the optimiser's state or the generator's is not the same bits,
    where capture fails, or where a loss was replayed less than twice.
    """
    called, replayed = make(), make()
    called.total = replayed.total = updates
    step = CudaGraphStep(replayed)
    step.on_cuda = True
    for update in range(updates):
        called.prepare()
        expected = called.update()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = step()
        assert not step.failed, str(caught[-1].message)
        assert found.keys() == expected.keys()
        check_same(expected, found, f"terms of update {update}")
    check_same(called.model.state_dict(), replayed.model.state_dict(), "weights")
    check_same(called.optimizer.state_dict(), replayed.optimizer.state_dict(), "states of the optimiser")
    check_same(called.generator.get_state(), replayed.generator.get_state(), "states of the generator")
    assert {turn[0] for turn in step.records} == {each.loss for each in replayed.steps}
    assert all(graph.replays >= 2 for graph, _ in step.records.values())
