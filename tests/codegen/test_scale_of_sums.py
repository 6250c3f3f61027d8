"""A mean that only contractions read is a sum, by whose count their weights are divided."""

import numpy as np
import onnx
import pytest

from tests.codegen.graphs import graph_of
from tests.codegen.test_fold_rows import CHANNELS, Convolutions, check
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel, Reduction
from tvm_neuron.schedule.rule import load_rules


def network(also: bool = False) -> tuple[onnx.ModelProto, Convolutions]:
    """Two layers over the means of an image; something else reads the means too if asked."""
    net = Convolutions()
    x = net.op("Relu", net.conv("x", CHANNELS, 160, (1, 1), 0))
    means = net.op("GlobalAveragePool", x)
    found = [net.conv(means, 160, channels, (1, 1), 0) for channels in (24, 40)]
    found += [net.op("Sigmoid", means)] if also else []
    return net.model(net.op("Concat", *found, axis=1)), net


def made(model: onnx.ModelProto, mode: str) -> list[Kernel]:
    return make_kernels(graph_of(model), load_rules(), load_device("inf2"), Precisions(mode))[0]


def test_weights_are_divided() -> None:
    model, net = network()
    kernels = made(model, "all")
    assert [kernel.expr is ROOT for kernel in kernels if isinstance(kernel.root, Reduction)] == [True]
    weights = [k.root.weights for k in kernels if isinstance(k.root, Contraction) and k.root.data.shape[2:] == (1, 1)]
    for name, found in zip(("conv3.w", "conv4.w"), sorted(weights, key=np.size), strict=True):
        np.testing.assert_allclose(found * (24 * 20), net.weights[name][:, :, 0, 0].T, rtol=1e-6)
    check(model, "inf2")


@pytest.mark.parametrize(("also", "mode"), [(True, "all"), (False, "all-fp16")], ids=["other reader", "float16"])
def test_means_stay_means(also: bool, mode: str) -> None:
    """A sum of 65,536 numbers around one leaves float16's range."""
    kernels = made(network(also)[0], mode)
    assert [kernel.expr is ROOT for kernel in kernels if isinstance(kernel.root, Reduction)] == [False]
