"The device that is picked, and the GPU that is not."

import warnings

import pytest
import torch

from disentangle_repro.core.device import listed_gpu, pick_device


@pytest.fixture
def smi(tmp_path, monkeypatch):
    "A machine whose `nvidia-smi` lists a GPU, which PyTorch does not see."
    (smi := tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'NVIDIA H100, 80GB, 535.104.05'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    listed_gpu.cache_clear()
    yield smi
    listed_gpu.cache_clear()


def test_a_gpu_that_cannot_be_used_is_warned_of(smi, monkeypatch):
    given = r"NVIDIA H100, 80GB is not used, .* with driver 535.104.05.*pip install torch==[0-9.]+ --index-url https"
    with pytest.warns(UserWarning, match=given):
        assert pick_device().type == "cpu"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pick_device("cpu").type == "cpu"
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert pick_device().type == "cpu"


def test_without_a_gpu_nothing_is_said(smi):
    smi.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'; exit 9\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pick_device().type == "cpu" and listed_gpu() == ("", "")
