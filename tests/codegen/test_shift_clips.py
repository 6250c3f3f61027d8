"""Clips after a bias move by it, and what multiplies their results by constants adds it to its own."""

import numpy as np
import onnx
import pytest

from tests.codegen.graphs import graph_of
from tests.codegen.test_fold_rows import CHANNELS, check
from tests.codegen.test_sum_biases import Blocks, instructions
from tests.models.agreement import random_inputs
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.isa import ActTensorScalar, TensorScalar
from tvm_neuron.schedule.expr import Apply, Expr, Num
from tvm_neuron.schedule.kernel import ROOT
from tvm_neuron.schedule.rule import load_rules


def depthwise(net: Blocks, wide: int = 40) -> str:
    """A window of each of so many channels, before its clip."""
    return net.conv(net.conv("x", CHANNELS, wide), 1, wide, group=wide)


def network(wide: int = 40, narrow: int = 24, batch: int = 1, size: int = 1, pads: int = 0) -> onnx.ModelProto:
    """A clipped depthwise layer and one that reads it through a window of that size."""
    net = Blocks()
    return net.model(net.conv(net.clip(depthwise(net, wide)), wide, narrow, (size, size), pads), batch=batch)


def is_shifted(expr: Expr) -> bool:
    """Whether the bounds of a clip are numbers of channels."""
    match expr:
        case Apply("min", (Apply("max", (inner, low)), high)):
            return inner is ROOT and not isinstance(low, Num) and not isinstance(high, Num)
    return False


def shifted(model: onnx.ModelProto, chip: str = "inf2", mode: str = "all") -> int:
    """How many clips are."""
    kernels, _ = make_kernels(graph_of(model), load_rules(), load_device(chip), Precisions(mode))
    return sum(is_shifted(kernel.expr) for kernel in kernels)


@pytest.mark.parametrize("mode", ["nest", "strict"])
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(("wide", "narrow", "batch", "size"), [(40, 24, 1, 1), (144, 32, 2, 1), (200, 24, 1, 3)])
def test_blocks_as_onnxruntime(wide: int, narrow: int, batch: int, size: int, chip: str, mode: str) -> None:
    model = network(wide, narrow, batch, size)
    assert shifted(model, chip) == 1
    check(model, chip, mode)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_the_way_out_is_one_instruction_of_act(chip: str) -> None:
    body = compile_model(network(), f"neuron/{chip}").program.body
    clips = [i for i in instructions(body) if isinstance(i, ActTensorScalar | TensorScalar) and i.op0 == "max"]
    assert {(type(i), i.source.space) for i in clips} == {(ActTensorScalar, "psum")}


def test_what_is_clipped_at_zero_is_zero() -> None:
    """All is negative: what reads it is its own bias, but for the last digits of float32."""
    net = Blocks()
    y = depthwise(net)
    net.weights[f"{y}.w"][:] = 0
    net.weights[f"{y}.b"] = -net.rng.uniform(0.001, 6, 40).astype(np.float32)
    z = net.narrow(net.clip(y), 40, 24)
    model = net.model(z)
    assert shifted(model) == 1
    (found,) = run(compile_model(model, "neuron/inf2"), random_inputs(model), "strict").values()
    wanted = np.broadcast_to(net.weights[f"{z}.b"].reshape(1, -1, 1, 1), found.shape)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_all_readers_add_the_shift(chip: str) -> None:
    """One of them sums groups of channels, and its result is clipped itself and shifted, too."""
    net = Blocks()
    y = net.clip(depthwise(net))
    grouped = net.clip(net.conv(y, 20, 40, (1, 1), 0, group=2))
    model = net.model(net.op("Add", net.narrow(y, 40, 24), net.narrow(grouped, 40, 24)))
    assert shifted(model, chip) == 2
    check(model, chip)


@pytest.mark.parametrize(("bias", "count"), [(5.9, 1), (-5.9, 1), (6.1, 0), (-6.1, 0)])
def test_a_bias_is_no_larger_than_the_bounds(bias: float, count: int) -> None:
    net = Blocks()
    y = depthwise(net)
    net.weights[f"{y}.b"][7] = bias
    assert shifted(net.model(net.narrow(net.clip(y), 40, 24))) == count


@pytest.mark.parametrize(("bias", "count"), [(0.1, 1), (1e-7, 0)])
def test_float16_holds_the_bias(bias: float, count: int) -> None:
    """Of 1e-7 it has one digit: 6e-8 times two."""
    net = Blocks()
    y = depthwise(net)
    net.weights[f"{y}.b"][7] = bias
    model = net.model(net.narrow(net.clip(y), 40, 24))
    assert shifted(model, mode="all-fp16") == count
    assert shifted(model, mode="all") == 1


@pytest.mark.parametrize(
    "reader", ["padded", "output", "sigmoid", "residual", "slice", "concat", "clip", "relu", "bias of ones"]
)
def test_others_stay(reader: str) -> None:
    net = Blocks()
    before = depthwise(net) if reader != "bias of ones" else net.narrow(net.narrow("x", CHANNELS, 24), 24, 40)
    y = net.op("Relu", before) if reader == "relu" else net.clip(before)
    z = net.narrow(y, 40, 24)
    match reader:
        case "padded":  # with zeros, to which no bias is added
            z = net.conv(y, 40, 24)
        case "sigmoid":
            z = net.op("Concat", z, net.op("Sigmoid", y), axis=1)
        case "residual":
            z = net.op("Add", y, net.narrow(y, 40, 40))
        case "slice":
            net.weights |= {name: np.array([at]) for name, at in (("first", 0), ("end", 20), ("axis", 1))}
            z = net.narrow(net.op("Slice", y, "first", "end", "axis"), 20, 24)
        case "concat":
            z = net.narrow(net.op("Concat", y, net.clip(depthwise(net)), axis=1), 80, 24)
        case "clip":  # one instruction, without a bias
            net.weights[f"{z}.b"][:] = 0
            z = net.clip(z)
    model = net.model(z)
    if reader == "output":
        model.graph.output.append(onnx.helper.make_tensor_value_info(y, onnx.TensorProto.FLOAT, (1, 40, 24, 20)))
    assert shifted(model) == 0
    check(model, "inf2")
