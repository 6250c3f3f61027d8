"""Several chunks of 128 partitions in one instruction: softmax, sums and transposes of many short rows."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.codegen.emit import joined, product
from tvm_neuron.codegen.emit.chunks import has_chunks, in_chunks
from tvm_neuron.codegen.steps import without
from tvm_neuron.schedule.expr import Apply, Axis, Index, Load
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


def run(model: onnx.ModelProto, x: np.ndarray, fp32_cast: str = "none") -> tuple[np.ndarray, int]:
    """The result, and the number of instructions."""
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, "neuron/inf2", params=params, options=tvm_neuron.BuildOptions(fp32_cast=fp32_cast))
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=x)
    return executor.get_output(0).numpy(), tvm_neuron.report(library).instructions


def of_rows(rows: int) -> onnx.ModelProto:
    """Tokens of 24 numbers: a softmax, what is left of a mean, and a product, for which tokens come to the columns."""
    weights = np.random.default_rng(5).standard_normal((24, 40)).astype("float32")
    nodes = [
        helper.make_node("Softmax", ["x"], ["p"], axis=-1),
        helper.make_node("ReduceMean", ["p", "axes"], ["m"], keepdims=1),
        helper.make_node("Sub", ["p", "m"], ["d"]),
        helper.make_node("MatMul", ["d", "w"], ["y"]),
    ]
    return make_model(nodes, {"x": (1, rows, 24)}, ["y"], {"axes": np.int64([-1]), "w": weights})


@pytest.mark.parametrize("rows", [1024, 1000, 192, 300])
def test_rows_of_many_chunks_agree_with_onnxruntime(rows: int) -> None:
    model, x = of_rows(rows), np.random.default_rng(rows).standard_normal((1, rows, 24)).astype("float32")
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(run(model, x)[0], expected, rtol=0, atol=2e-6)  # sums of 24 in float32, up to 0.5


def test_short_rows_share_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = of_rows(4096), np.zeros((1, 4096, 24), "float32")
    together = run(model, x)[1]
    for module in (joined, product):
        monkeypatch.setattr(module, "has_chunks", lambda *_: False)
    assert together < 0.6 * run(model, x)[1]


def of_map(side: int, channels: int) -> onnx.ModelProto:
    """A norm of what a convolution makes: places of the map come to the partitions, 128 at a time."""
    rng = np.random.default_rng(channels)
    sizes = {"w": (channels, 48, 3, 3), "g": (channels,), "b": (channels,), "m": (channels, channels)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("LayerNormalization", ["t", "g", "b"], ["l"], axis=-1),
        helper.make_node("MatMul", ["l", "m"], ["y"]),
    ]
    weights = {name: rng.standard_normal(size).astype("float32") for name, size in sizes.items()}
    return make_model(nodes, {"x": (1, 48, side, side)}, ["y"], weights)


@pytest.mark.parametrize(("side", "channels"), [(28, 96), (20, 100), (24, 64), (33, 60), (19, 200)])
def test_maps_that_are_turned_agree_with_onnxruntime(side: int, channels: int) -> None:
    model = of_map(side, channels)
    x = np.random.default_rng(side).standard_normal((1, 48, side, side)).astype("float32")
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    # Two products of operands in bfloat16 (2^-9 each), and what lies between them is stored so, too.
    assert np.linalg.norm(run(model, x, "all")[0] - expected) < 6 * 2**-9 * np.linalg.norm(expected)


def test_chunks_of_what_is_turned_leave_a_bank_together(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = of_map(28, 96), np.zeros((1, 48, 28, 28), "float32")
    with without("spread_sums"):  # else nothing is turned: the array adds up channels where they lie
        together = run(model, x, "all")[1]
        monkeypatch.setattr(product, "joined", lambda *_: None)
        assert together < run(model, x, "all")[1]


def dense(tokens: int, channels: int) -> onnx.ModelProto:
    """x @ w + b through a function of several steps, y * tanh(y) + b with values for each channel, then @ v."""
    rng = np.random.default_rng(6)
    constants = {
        "w": rng.standard_normal((24, channels)).astype("float32"),
        "b": rng.standard_normal(channels).astype("float32"),
        "v": rng.standard_normal((channels, 24)).astype("float32"),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("Tanh", ["s"], ["t"]),
        helper.make_node("Mul", ["s", "t"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("MatMul", ["a", "v"], ["y"]),
    ]
    return make_model(nodes, {"x": (tokens, 24)}, ["y"], constants)


@pytest.mark.parametrize(("tokens", "channels"), [(40, 512), (100, 300), (130, 512), (7, 1100)])
def test_sums_of_several_chunks_with_a_bias_agree_with_onnxruntime(tokens: int, channels: int) -> None:
    model, x = dense(tokens, channels), np.random.default_rng(tokens).standard_normal((tokens, 24)).astype("float32")
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    # sums of 24 and of up to 1,100 in float32, in another order
    assert np.linalg.norm(run(model, x)[0] - expected) <= 2e-6 * np.linalg.norm(expected)


def test_sums_along_more_axes_than_a_pattern_has() -> None:
    """Turned around, five axes of two don't join: loops are left to go along the outermost."""
    model = dense(32, 512)
    first = helper.make_node("Transpose", ["x"], ["x.turned"], perm=[4, 3, 2, 1, 0, 5])
    rows = helper.make_node("Reshape", ["x.turned", "rows"], ["x.rows"])
    model.graph.node[0].input[0] = "x.rows"
    weights = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    shape = (2, 2, 2, 2, 2, 24)
    model = make_model([first, rows, *model.graph.node], {"x": shape}, ["y"], {**weights, "rows": np.int64([32, 24])})
    x = np.random.default_rng(8).standard_normal(shape).astype("float32")
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    assert np.linalg.norm(run(model, x)[0] - expected) <= 2e-6 * np.linalg.norm(expected)


def test_the_way_out_of_several_chunks_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = dense(40, 512), np.zeros((40, 24), "float32")
    together = run(model, x)[1]
    monkeypatch.setattr(joined, "has_chunks", lambda *_: False)
    assert together < 0.8 * run(model, x)[1]


def heads(rows: int, count: int, keys: int) -> onnx.ModelProto:
    """The softmax of each head's rows, nought where it is not a number, as torch's attention has it."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        helper.make_node("Softmax", ["t"], ["p"], axis=-1),
        helper.make_node("IsNaN", ["p"], ["n"]),
        helper.make_node("Where", ["n", "zero", "p"], ["y"]),
    ]
    return make_model(nodes, {"x": (rows, count, keys)}, ["y"], {"zero": np.float32(0)})


@pytest.mark.parametrize(("rows", "count", "keys"), [(64, 4, 64), (49, 3, 100), (130, 2, 300)])
def test_rows_of_several_heads_agree_with_onnxruntime(rows: int, count: int, keys: int) -> None:
    model = heads(rows, count, keys)
    x = np.random.default_rng(rows).standard_normal((rows, count, keys)).astype("float32")
    x[3, 1, :] = -np.inf
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    assert not expected[1, 3].any()
    np.testing.assert_allclose(run(model, x)[0], expected, rtol=0, atol=2e-6)


def copy(tensor: Tensor, out: Tensor, channel: Axis, free: Axis) -> Kernel:
    load = Load(tensor, (Index(channel), Index(free)))
    maps = (Linear(0, {channel: 1}), Linear(0, {free: 1}))
    return Kernel((), out, maps, channel, (free,), load)


def test_a_run_in_chunks_addresses_the_same_elements() -> None:
    channel, free = Axis("c", 400), Axis("f", 3)
    kernel = copy(Tensor("x", (400, 3), "float32"), Tensor("y", (400, 3), "float32"), channel, free)
    several, lane, chunk = in_chunks(kernel, channel, (64, 64, 3))
    assert (several.channel, several.free) == (lane, (chunk, free))
    assert (lane.extent, chunk.extent) == (64, 3)
    assert several.out_maps == (Linear(64, {chunk: 128, lane: 1}), Linear(0, {free: 1}))
    assert several.expr != kernel.expr


def test_what_counts_channels_or_has_them_beside_the_partitions_is_left_as_it_is() -> None:
    channel, free = Axis("c", 400), Axis("f", 400)
    x, y = Tensor("x", (400, 400), "float32"), Tensor("y", (400, 400), "float32")
    kernel = copy(x, y, channel, free)
    assert has_chunks(kernel, channel, {x: 0, y: 0})
    assert not has_chunks(kernel, channel, {x: 1, y: 0})
    counted = Kernel((), y, kernel.out_maps, channel, (free,), Apply("add", (kernel.expr, Index(channel))))
    assert not has_chunks(counted, channel, {x: 0, y: 0})
    table = Tensor("t", (400, 400), "float32", value=np.ones((400, 400), "float32"))
    assert not has_chunks(copy(table, y, channel, free), channel, {table: 0, y: 0})
