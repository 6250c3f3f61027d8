"""A tensor read in two layouts at once runs on the core; one read backwards is refused with the reason."""

import numpy as np
import onnxruntime
import pytest
from onnx import NodeProto, helper

from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron import BuildOptions, relay
from tvm_neuron.isa import DmaCopy, DramTile
from tvm_neuron.profile import Report
from tvm_neuron.relay import graph_executor
from tvm_neuron.runtime import report


def _run(
    nodes: list[NodeProto], shape: tuple[int, ...], weights: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, Report]:
    model = make_model(nodes, {"x": shape}, ["y"], weights)
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params)
    executor = graph_executor.GraphModule(library["default"]())
    executor.run(x=x)
    return executor.get_output(0).numpy(), expected, report(library)


def test_a_tensor_and_its_transpose_are_added_on_the_core() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 2, 1]),
        helper.make_node("Add", ["x", "t"], ["y"]),
    ]
    actual, expected, told = _run(nodes, (1, 8, 8, 8), {})
    np.testing.assert_array_equal(actual, expected)
    assert {row.where for row in told.placement} == {"neuroncore"}


@pytest.mark.parametrize("axis", [1, 3])
def test_what_reads_backwards_stays_on_the_neuroncore(axis: int) -> None:
    nodes = [
        helper.make_node("Slice", ["x", "start", "end", "axis", "step"], ["s"], name="flip"),
        helper.make_node("Relu", ["s"], ["y"], name="relu"),
    ]
    numbers = {"start": -1, "end": -100, "axis": axis, "step": -1}
    actual, expected, told = _run(nodes, (1, 8, 6, 5), {name: np.int64([n]) for name, n in numbers.items()})
    np.testing.assert_array_equal(actual, expected)
    assert {row.where for row in told.placement} == {"neuroncore"}


def test_padding_after_what_lies_on_the_partitions() -> None:
    """Rows on the partitions can't be filled from partition 66 on: the padded tensor is laid out otherwise."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Conv", ["t", "w"], ["y"], pads=[2, 2]),
    ]
    weights = np.random.default_rng(6).standard_normal((40, 40, 5)).astype(np.float32) / 14
    actual, expected, told = _run(nodes, (1, 64, 40), {"w": weights})
    np.testing.assert_allclose(actual, expected, atol=0.06)  # sums of 200 products of bf16 operands of deviation 1
    assert {row.where for row in told.placement} == {"neuroncore"}


def test_a_sum_of_many_tensors_takes_several_kernels() -> None:
    """One kernel would need more temporary tiles than there is memory for."""
    nodes = [helper.make_node("Conv", ["x", "w"], [f"c{i}"], name=f"conv{i}") for i in range(24)]
    nodes += [helper.make_node("Relu", [f"c{i}"], [f"t{i}"], name=f"relu{i}") for i in range(24)]  # else all were one
    nodes.append(helper.make_node("Sum", [f"t{i}" for i in range(24)], ["y"]))
    actual, expected, told = _run(nodes, (1, 8, 32, 32), {"w": np.eye(8, dtype=np.float32)[:, :, None, None]})
    np.testing.assert_allclose(actual, expected, rtol=0.05, atol=0.05)  # as bf16 adds up 24 times
    assert {row.where for row in told.placement} == {"neuroncore"}


@pytest.mark.parametrize("mode", ["nest", "strict"])
def test_what_all_channels_share_is_brought_to_each_partition_once(mode: str) -> None:
    """Differences to the maximum of all: it goes to 128 partitions, not to all 300 channels, where these stay there."""
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=1),
        helper.make_node("Sub", ["x", "m"], ["y"]),
    ]
    made = compile_model(make_model(nodes, {"x": (1, 300, 5, 7)}, ["y"], {}), options=BuildOptions(optlevel=1))
    x = np.random.default_rng(3).standard_normal((1, 300, 5, 7)).astype(np.float32) * 4
    np.testing.assert_array_equal(run(made, {"x": x}, mode)["y"], x - x.max())
    spread = [
        counts
        for counts, i in made.program.instructions()
        if isinstance(i, DmaCopy) and isinstance(i.source, DramTile) and i.source.dims[0] == (0, 128)
    ]
    assert spread == [()]


@pytest.mark.parametrize("depth", [1, 129, 1000])
def test_a_single_row_comes_in_one_piece(depth: int) -> None:
    """It lies on one partition, and the PE array puts it on all: DMA would do that number by number."""
    rng = np.random.default_rng(depth)
    weights = (rng.standard_normal((depth, 24)) / depth**0.5).astype(np.float32)
    dense = helper.make_node("MatMul", ["x", "w"], ["y"])
    made = compile_model(make_model([dense], {"x": (1, depth)}, ["y"], {"w": weights}))
    x = rng.standard_normal((1, depth)).astype(np.float32)
    np.testing.assert_allclose(run(made, {"x": x}, "strict")["y"], x @ weights, rtol=0.05, atol=0.02)
    sources = [i.source for _, i in made.program.instructions() if isinstance(i, DmaCopy)]
    inputs = [s for s in sources if isinstance(s, DramTile) and made.program.tensors[s.tensor].kind == "input"]
    assert [source.shape for source in inputs] == [(1, depth)]


def test_a_single_row_of_each_image_is_transposed_in_parts_of_the_batch() -> None:
    """The mask's sums, which all heads share, lie on one partition when they are made."""
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Add", ["scores", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["shares"]),
        helper.make_node("ReduceSum", ["mask", "axis"], ["factors"]),
        helper.make_node("Mul", ["shares", "factors"], ["scaled"]),
        helper.make_node("MatMul", ["scaled", "v"], ["y"]),
    ]
    shapes = {"q": (2, 3, 4, 8), "k": (2, 3, 8, 6), "mask": (2, 1, 4, 6), "v": (2, 3, 6, 8)}
    model = make_model(nodes, shapes, ["y"], {"axis": np.int64([3])})
    rng = np.random.default_rng(9)
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    actual = run(compile_model(model), inputs, "strict")["y"]
    np.testing.assert_allclose(actual, expected, rtol=0.05, atol=0.05)  # as products are of bf16 operands


def test_a_dense_layer_on_one_token_sums_over_all_partitions() -> None:
    """Tokens lie on the partitions for the norm; the one that is read would keep a single row of the PE array busy."""
    nodes = [
        helper.make_node("LayerNormalization", ["x", "scale"], ["n"]),
        helper.make_node("Gather", ["n", "first"], ["t"], axis=1),
        helper.make_node("MatMul", ["t", "w"], ["y"]),
    ]
    weights = np.random.default_rng(7).standard_normal((256, 128)).astype(np.float32) / 16
    known = {"scale": np.ones(256, np.float32), "first": np.int64(0), "w": weights}
    actual, expected, told = _run(nodes, (2, 64, 256), known)
    np.testing.assert_allclose(actual, expected, atol=0.06)  # sums of 256 products of bf16 operands
    busy = next(queue.busy_us for queue in told.engines if queue.queue == "pe")
    assert busy < 3  # by rows of a single partition each: 512 matmuls, 33 us


@pytest.mark.parametrize(("channels", "heads"), [(96, 3), (130, 2), (48, 4)])
@pytest.mark.parametrize("after", ["Add", "Mul"])
def test_heads_that_come_back_beside_an_image_of_all_channels(channels: int, heads: int, after: str) -> None:
    """Arithmetic on rows that two axes count, heads and channels of each, together with what has them as one."""
    size, weights = channels // heads, {"whole": np.int64([1, channels, 6, 5])}
    weights |= {"parts": np.int64([1, heads, size, 30]), "k": np.float32(1 / 30)}
    weights["scale"] = np.random.default_rng(8).standard_normal((channels, 1, 1)).astype(np.float32)
    nodes = [
        helper.make_node("Reshape", ["x", "parts"], ["h"]),
        helper.make_node("Transpose", ["h"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["h", "t"], ["s"]), helper.make_node("Mul", ["s", "k"], ["m"]),
        helper.make_node("Softmax", ["m"], ["p"], axis=-1), helper.make_node("MatMul", ["p", "h"], ["o"]),
        helper.make_node("Reshape", ["o", "whole"], ["b"]), helper.make_node("Mul", ["b", "scale"], ["c"]),
        helper.make_node(after, ["c", "x"], ["y"]),
    ]  # fmt: skip
    actual, expected, told = _run(nodes, (1, channels, 6, 5), weights)
    np.testing.assert_allclose(actual, expected, atol=2e-2 * np.abs(expected).max())  # products and results of bf16
    assert {row.where for row in told.placement} == {"neuroncore"}
