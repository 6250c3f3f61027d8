"""What becomes one kernel, and what a kernel no longer has to compute."""

from collections import Counter

import numpy as np
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of, layer
from tvm_neuron.codegen.kernels import fuse
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.expr import Apply, Expr, Load
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel
from tvm_neuron.schedule.rule import load_rules
from tvm_neuron.schedule.tensor import Tensor

RNG = np.random.default_rng(0)
NODE = helper.make_node
CONV = NODE("Conv", ["x", "w"], ["c"], name="conv")


def kernels_of(nodes: list, shape: tuple[int, ...] = (1, 8, 6, 6), **weights: np.ndarray) -> list[Kernel]:
    graph = graph_of(layer(nodes, shape, **weights))
    return make_kernels(graph, load_rules(), load_device("inf1"), is_quick=True)[0]


def weight(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 1.5, shape).astype(np.float32)


def operations(expr: Expr) -> list[str]:
    if not isinstance(expr, Apply):
        return []
    return [expr.op, *(name for arg in expr.args for name in operations(arg))]


def test_a_batch_norm_costs_a_convolution_nothing_but_its_shift() -> None:
    w, scale, shift, mean, var = weight(16, 8, 1, 1), *(weight(16) for _ in range(4))
    norm = NODE("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"], name="norm", epsilon=1e-5)
    nodes = [CONV, norm, NODE("Relu", ["n"], ["y"], name="relu")]
    (kernel,) = kernels_of(nodes, w=w, s=scale, b=shift, m=mean, v=var)
    assert [origin.name for origin in kernel.origins] == ["conv", "norm", "relu"]
    assert sorted(operations(kernel.expr)) == ["add", "max"]
    assert isinstance(kernel.root, Contraction)
    factor = scale.astype(np.float64) / np.sqrt(var.astype(np.float64) + 1e-5)
    np.testing.assert_allclose(kernel.root.weights.reshape(8, 16), w[:, :, 0, 0].T * factor, rtol=1e-6)
    (added,) = [arg for arg in _adds(kernel.expr) if isinstance(arg, Load) and arg is not ROOT]
    np.testing.assert_allclose(added.tensor.value, shift - mean * factor, rtol=1e-5, atol=1e-6)


def _adds(expr: Expr) -> list[Expr]:
    if not isinstance(expr, Apply):
        return []
    return [*(expr.args if expr.op == "add" else ()), *(arg for part in expr.args for arg in _adds(part))]


def test_a_residual_sum_is_made_on_the_way_out_of_psum() -> None:
    nodes = [CONV, NODE("Add", ["c", "x"], ["s"], name="sum"), NODE("Relu", ["s"], ["y"], name="relu")]
    (kernel,) = kernels_of(nodes, w=weight(8, 8, 1, 1))
    assert [origin.op for origin in kernel.origins] == ["Conv", "Add", "Relu"]


def test_what_is_read_twice_is_made_once() -> None:
    nodes = [
        CONV,
        NODE("Relu", ["c"], ["r"], name="relu"),
        NODE("Sigmoid", ["c"], ["g"], name="sigmoid"),
        NODE("Mul", ["r", "g"], ["y"], name="mul"),
    ]
    kernels = kernels_of(nodes, w=weight(8, 8, 1, 1))
    assert sum(isinstance(kernel.root, Contraction) for kernel in kernels) == 1
    assert len({kernel.out for kernel in kernels}) == len(kernels)


@pytest.mark.parametrize("axis", [1, 2])
def test_parts_are_written_straight_into_a_concatenation(axis: int) -> None:
    """No kernel only copies where the second part starts at a partition that an engine can write."""
    nodes = [
        NODE("Conv", ["x", "w"], ["a"], name="left"),
        NODE("Conv", ["x", "w"], ["b"], name="right"),
        NODE("Concat", ["a", "b"], ["y"], name="concat", axis=axis),
    ]
    kernels = kernels_of(nodes, w=weight(32, 8, 1, 1))
    assert [kernel.origins[0].op for kernel in kernels] == ["Conv", "Conv"]
    assert kernels[0].out is kernels[1].out


def test_reshapes_and_transposes_vanish_between_convolutions() -> None:
    nodes = [
        NODE("Conv", ["x", "w"], ["c"], name="conv1"),
        NODE("Reshape", ["c", "five"], ["r"], name="apart"),
        NODE("Transpose", ["r"], ["t"], name="shuffle", perm=[0, 2, 1, 3, 4]),
        NODE("Reshape", ["t", "four"], ["f"], name="together"),
        NODE("Conv", ["f", "w2"], ["y"], name="conv2"),
    ]
    five, four = np.array([1, 4, 4, 6, 6]), np.array([1, 16, 6, 6])
    kernels = kernels_of(nodes, w=weight(16, 8, 1, 1), w2=weight(8, 16, 1, 1), five=five, four=four)
    assert [kernel.origins[0].name for kernel in kernels] == ["conv1", "conv2"]


def test_joining_is_tried_once_for_each_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often an expression reads it: quantising does so many times."""
    tried: Counter[tuple[Tensor, Tensor]] = Counter()
    rounds = []

    def counted(first: Kernel, second: Kernel, tensor: Tensor) -> Kernel | None:
        tried[second.out, tensor] += 1
        return join(first, second, tensor)

    def one_round(kernels: list[Kernel]) -> list[Kernel]:
        tried.clear()
        made = once(kernels)
        rounds.append(max(tried.values(), default=0))
        return made

    join, once = fuse._join, fuse._fuse_once
    monkeypatch.setattr(fuse, "_join", counted)
    monkeypatch.setattr(fuse, "_fuse_once", one_round)
    nodes = []
    for number, (given, made) in enumerate(zip(["x", "d0", "d1"], ["d0", "d1", "y"], strict=True)):
        nodes.append(NODE("QuantizeLinear", [given, f"s{number}", "zero"], [f"q{number}"]))
        nodes.append(NODE("DequantizeLinear", [f"q{number}", f"s{number}", "zero"], [made]))
    scales = {f"s{number}": np.float32(0.1 + number) for number in range(3)}
    kernels_of(nodes, **scales, zero=np.int8(3))
    assert max(rounds) == 1
