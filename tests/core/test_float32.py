"What a float32 product is on a GPU: one setting for matrix products and convolutions, whoever has set what before."

import multiprocessing
from contextlib import redirect_stdout
from io import StringIO

import pytest

READ = "torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32, torch.get_float32_matmul_precision()"
NAMES = "float32_products, float32_products_in, set_float32_products"
NEWER = pytest.mark.skipif(
    "not hasattr(__import__('torch').backends, 'fp32_precision')", reason="this PyTorch has the older settings alone"
)


def printed_by(code: str) -> str:
    "What Python prints."
    with redirect_stdout(StringIO()) as printed:
        exec(f"import torch\nfrom disentangle_repro.core.device import {NAMES}\n{code}", {})
    return printed.getvalue().strip()


def in_a_process(code: str) -> str:
    "The same in a new process: the settings belong to a process, and other tests may have changed those of this one."
    clean = multiprocessing.get_context("forkserver")
    clean.set_forkserver_preload(["disentangle_repro.core.device", "disentangle_repro.tripod.tripod"])
    with clean.Pool(1) as pool:
        return pool.apply(printed_by, (code,))


@pytest.mark.parametrize("kind,allowed,precision", [("ieee", False, "highest"), ("tf32", True, "high")])
def test_pytorchs_own_readers_agree(kind, allowed, precision):
    printed = in_a_process(f"set_float32_products({kind!r})\nprint({READ.rpartition(', ')[0]}, float32_products())")
    assert printed == f"{allowed} {allowed} {{'matmul': '{kind}', 'convolution': '{kind}'}}"


def test_inside_the_penalty_nothing_that_pytorch_reads_raises():
    code = "from disentangle_repro.tripod.tripod import full_precision\nwith full_precision('cpu'):\n"
    assert in_a_process(f"{code}    print({READ})\nprint({READ})") == "False False highest\nTrue False highest"


@NEWER
@pytest.mark.parametrize("before", ["cuda.matmul", "cudnn.conv", "cudnn.rnn"])
def test_what_somebody_set_by_the_newer_names_comes_back(before):
    value = "ieee" if before.startswith("cudnn") else "tf32"
    setting = f"torch.backends.{before}.fp32_precision"
    inside = "with float32_products_in('ieee'):\n    print(float32_products())"
    printed = in_a_process(f"{setting} = {value!r}\n{inside}\nprint({setting})")
    assert printed == f"{{'matmul': 'ieee', 'convolution': 'ieee'}}\n{value}"


def test_sums_of_bf16_products_are_in_float32():
    flag = "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction"
    code = f"with float32_products_in('ieee'):\n    print({flag})\nprint({flag})\nset_float32_products()\nprint({flag})"
    assert in_a_process(code).split() == ["False", "True", "False"]


def test_another_kind_is_refused():
    from disentangle_repro.core.device import set_float32_products

    with pytest.raises(ValueError, match="kind is 'fp32' but must be one of 'ieee', 'tf32'"):
        set_float32_products("fp32")
