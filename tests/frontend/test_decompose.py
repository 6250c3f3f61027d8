"""Cumulative sums, extremes' positions and rankings as calls of simpler operators, against NumPy and onnxruntime."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from tvm import relax

import tvm_neuron
from tests.frontend.test_indexing import model
from tvm_neuron.errors import ModelError
from tvm_neuron.relay import build, frontend
from tvm_neuron.relay.graph_executor import GraphModule

SPECIAL = np.float32([0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, 3.0e38, -3.4e38])


def run(
    node: onnx.NodeProto, inputs: dict[str, np.ndarray], known: dict[str, np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray], list[Any]]:
    """(outputs on the core, onnxruntime's outputs, operators on the CPU with their reasons)."""
    proto = model(node, inputs, known)
    del proto.graph.output[:]
    proto.graph.output.extend(helper.ValueInfoProto(name=name) for name in node.output)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    mod, params = frontend.from_onnx(proto)
    lib = build(mod, target="neuron", params=params)
    runner = GraphModule(lib["default"](tvm.cpu(0)))
    runner.run(**inputs)
    got = [runner.get_output(i).numpy() for i in range(len(node.output))]
    return got, session.run(None, inputs), [row for row in tvm_neuron.report(lib).placement if row.where == "cpu"]


def drawn(data: st.DataObject, shape: tuple[int, ...]) -> np.ndarray:
    """Few different values, so that there are ties, infinities among them."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    return rng.choice(SPECIAL, shape).astype(np.float32)


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_cumulative_sums(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    flags = {name: data.draw(st.integers(0, 1)) for name in ("exclusive", "reverse")}
    x = np.random.default_rng(1).integers(-9, 9, shape).astype(np.float32)
    got, expected, on_cpu = run(helper.make_node("CumSum", ["x", "a"], ["y"], **flags), {"x": x}, {"a": np.int64(axis)})
    np.testing.assert_array_equal(got[0], expected[0])  # whole numbers this small are exact in bfloat16
    assert not on_cpu


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_positions_of_extremes(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=2, max_size=4)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    op = data.draw(st.sampled_from(["ArgMax", "ArgMin"]))
    flags = {name: data.draw(st.integers(0, 1)) for name in ("keepdims", "select_last_index")}
    x = drawn(data, shape)
    got, expected, _ = run(helper.make_node(op, ["x"], ["y"], axis=axis, **flags), {"x": x}, {})
    np.testing.assert_array_equal(got[0], expected[0])
    assert got[0].dtype == np.int64


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_rankings(data: st.DataObject) -> None:
    shape = (*data.draw(st.lists(st.integers(1, 5), max_size=2)), data.draw(st.integers(1, 30)))
    count = data.draw(st.integers(1, min(shape[-1], 6)))
    x = drawn(data, shape)
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], largest=data.draw(st.integers(0, 1)))
    got, expected, _ = run(node, {"x": x}, {"k": np.int64([count])})
    np.testing.assert_array_equal(got[0], expected[0])
    np.testing.assert_array_equal(got[1], expected[1])


def test_what_finds_positions_is_on_the_neuroncore() -> None:
    """Only the cast of the positions to whole numbers may be elsewhere."""
    x = np.random.default_rng(0).standard_normal((40, 60)).astype(np.float32)
    data = relax.Var("x", relax.TensorType(x.shape, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [data]):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(relax.op.argmax(data, 1)))
        builder.emit_func_output(result)
    lib = tvm.compile(builder.get(), target="neuron")
    (row,) = tvm_neuron.report(lib).placement
    assert row.where == "neuroncore" or "int64" in row.reason
    machine = relax.VirtualMachine(lib, tvm.cpu(0))
    np.testing.assert_array_equal(machine["main"](tvm.runtime.tensor(x)).numpy(), x.argmax(1))


@pytest.mark.slow
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_of_short_axes(descending: bool) -> None:
    x = np.random.default_rng(0).choice(SPECIAL, (5, 9, 3)).astype(np.float32)
    data = relax.Var("x", relax.TensorType(x.shape, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [data]):
        with builder.dataflow():
            ordered = builder.emit(relax.op.sort(data, 1, descending))
            order = builder.emit(relax.op.argsort(data, 1, descending))
            result = builder.emit_output(relax.Tuple([ordered, order]))
        builder.emit_func_output(result)
    machine = relax.VirtualMachine(tvm.compile(builder.get(), target="neuron"), tvm.cpu(0))
    values, positions = (part.numpy() for part in machine["main"](tvm.runtime.tensor(x)))
    expected = np.argsort(-x if descending else x, 1, stable=True)
    np.testing.assert_array_equal(positions, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, 1))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_negatives_of_unsigned_numbers(dtype: str) -> None:
    """TVM itself can't compile the first, and gives 0 of 32 and 64 bits for the others."""
    data = relax.Var("x", relax.TensorType((2, 3), dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [data]):
        zeros = relax.const(np.zeros((1, 3), dtype))
        results = [relax.op.negative(data)]
        results += [relax.op.subtract(start, data) for start in (relax.const(0, dtype), zeros)]
        builder.emit_func_output(builder.emit(relax.Tuple([builder.emit(each) for each in results])))
    x = np.array([[0, 1, 2], [77, 127, 255]], dtype)
    machine = relax.VirtualMachine(tvm.compile(builder.get(), target="neuron/inf2"), tvm.cpu())
    for found in machine["main"](tvm.runtime.tensor(x)):
        np.testing.assert_array_equal(found.numpy(), np.zeros(1, dtype) - x)


def test_the_largest_of_one_number_alone_is_refused() -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"])
    proto = model(node, {"x": np.float32(1)}, {"k": np.int64([1])})
    with pytest.raises(ModelError, match=r"\(TopK\) can't be imported"):
        frontend.from_onnx(proto)


@pytest.mark.parametrize("sides", ["W", "HW", "DHW"])
def test_transposed_convolutions_with_channels_last(sides: str) -> None:
    """As TVM itself computes them with channels first, the only layout that it has kernels for."""
    rng, rank = np.random.default_rng(3), len(sides)
    image = rng.standard_normal((1, *(4, 3, 5)[:rank], 3)).astype(np.float32)
    kernel = rng.standard_normal((*(2, 3, 2)[:rank], 4, 3)).astype(np.float32)  # results before channels
    operator = getattr(relax.op.nn, f"conv{rank}d_transpose")
    first = [0, rank + 1, *range(1, rank + 1)]
    found, wanted = (
        _computed(lambda *args, made=made: operator(*args, strides=[2] * rank, **made), arrays, target)
        for made, arrays, target in (
            ({"data_layout": f"N{sides}C", "kernel_layout": f"{sides}OI"}, (image, kernel), "neuron/inf2"),
            ({}, (image.transpose(first), kernel.transpose(rank + 1, rank, *range(rank))), "llvm"),
        )
    )
    np.testing.assert_allclose(found.transpose(first), wanted, rtol=0.02, atol=0.05)  # sums of bfloat16's products


def _computed(make: Any, arrays: tuple[np.ndarray, ...], target: str) -> np.ndarray:
    """What a module of one call gives, its second operand a weight."""
    data = relax.Var("x", relax.TensorType(arrays[0].shape, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [data]):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(make(data, relax.const(np.ascontiguousarray(arrays[1])))))
        builder.emit_func_output(result)
    machine = relax.VirtualMachine(tvm.compile(builder.get(), target=target), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(np.ascontiguousarray(arrays[0]))).numpy()
