"""Kernels written by hand as operators of torch: in a model that torch runs, and in the same model compiled."""

import numpy as np
import pytest
import torch

import tvm_neuron
import tvm_neuron.nki as nki
import tvm_neuron.nki.language as nl
from tests.torch.test_compile import outputs
from tvm_neuron.errors import KernelError
from tvm_neuron.torch import operator_of

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")]


@nki.jit
def scaled_and_sums(x, scale):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    sums = nl.ndarray((x.shape[0], 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.multiply(nl.load(x), nl.load(scale))
    nl.store(out, value=tile)
    nl.store(sums, value=nl.sum(tile, axis=1, keepdims=True))
    return out, sums


@nki.jit
def doubled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.multiply(nl.load(x), 2.0))
    return out


def test_a_kernel_is_an_operator_of_a_compiled_model() -> None:
    twice, sums_of = operator_of(doubled, "twice"), operator_of(scaled_and_sums, results=2)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.randn(64, 48))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            out, sums = sums_of(twice(torch.relu(x)), self.scale)
            return out - 1.0, sums

    torch.manual_seed(3)
    net, x = Net().eval(), torch.randn(64, 48)
    scaled = 2 * np.maximum(x.numpy(), 0).astype(np.float64) * net.scale.detach().numpy()
    wanted = scaled - 1, scaled.sum(1, keepdims=True)
    with torch.no_grad():
        eager = net(x)
    library = tvm_neuron.compile(net, x)
    for found in (eager, outputs(library, x)):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one.detach().numpy(), other, 1e-5, 1e-5)  # float32 sums of 48 numbers
    report = tvm_neuron.report(library)
    assert not report.placed("cpu")
    assert [row.kernel for row in report.kernels] == ["twice", "scaled_and_sums"]


def test_names_and_results_are_held() -> None:
    operator_of(doubled, "first_of_two")
    with pytest.raises(KernelError, match="'first_of_two': it takes the name of a Python variable that no other"):
        operator_of(doubled, "first_of_two")
    wrong = operator_of(doubled, "said_to_give_two", results=2)
    with pytest.raises(KernelError, match="'said_to_give_two' returns 1 tensors; its operator was said to give 2"):
        wrong(torch.zeros(8, 4))
