"""choose_routes: outputs in short pieces are transposed before they are stored, where that takes less time."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import tvm_neuron
from tests.codegen.graphs import graph_of
from tests.codegen.on_core import PRECISIONS, check
from tests.models.agreement import random_inputs
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import Device, load_device
from tvm_neuron.isa import DmaCopy, DramTile
from tvm_neuron.schedule.expr import Load
from tvm_neuron.schedule.kernel import Transposition
from tvm_neuron.schedule.rule import load_rules

ANCHORS = 3
INF1 = load_device("inf1")


def _boxes(*levels: tuple[int, int]) -> onnx.ModelProto:
    """Four numbers for each anchor at all positions of some levels, one behind the other."""
    rng = np.random.default_rng(11)
    weights = {"w": (rng.standard_normal((4 * ANCHORS, 32, 1, 1)) / 6).astype(np.float32)}
    nodes, shapes = [], {}
    for n, (rows, columns) in enumerate(levels):
        shapes[f"x{n}"] = (1, 32, rows, columns)
        weights[f"shape{n}"] = np.array([1, rows * columns * ANCHORS, 4])
        nodes += [
            helper.make_node("Conv", [f"x{n}", "w"], [f"c{n}"]),
            helper.make_node("Transpose", [f"c{n}"], [f"t{n}"], perm=[0, 2, 3, 1]),
            helper.make_node("Reshape", [f"t{n}", f"shape{n}"], [f"r{n}"]),
            helper.make_node("Sigmoid", [f"r{n}"], [f"s{n}"]),
            helper.make_node("Sub", [f"s{n}", f"r{n}"], [f"b{n}"]),
        ]
    nodes.append(helper.make_node("Concat", [f"b{n}" for n in range(len(levels))], ["y"], axis=1))
    return make_model(nodes, shapes, ["y"], weights)


def _transposed(model: onnx.ModelProto, device: Device = INF1, fast_relayout: bool = True) -> list[bool]:
    """Of each transfer into the output: whether what it stores was transposed for it."""
    rules = tuple(rule for rule in load_rules() if fast_relayout or rule.name != "transposition")
    kernels, _ = make_kernels(graph_of(model), rules, device, is_quick=True)
    turned = {k.out for k in kernels if isinstance(k.root, Transposition) and ".by" in k.out.name}
    stores = [k for k in kernels if k.by_dma and k.out.kind == "output" and isinstance(k.expr, Load)]
    return [k.expr.tensor in turned for k in stores if isinstance(k.expr, Load)]


def test_short_pieces_are_transposed() -> None:
    assert _transposed(_boxes((40, 40), (20, 20))) == [True, True]


def test_a_level_whose_transposition_costs_more_than_its_pieces_is_left_alone() -> None:
    quick = replace(INF1, dma_descriptor_ns=1)
    assert _transposed(_boxes((40, 40), (20, 20)), quick) == [False, False]


def test_without_transpositions_nothing_goes_through_dram_for_it() -> None:
    assert _transposed(_boxes((40, 40), (20, 20)), fast_relayout=False) == [False, False]


def test_rows_are_stored_while_the_array_works_on() -> None:
    """By price alone a tower of convolutions on four images had its output turned: 1,944 us on inf1, not 1,492."""
    shapes = {"x": (4, 1024, 7, 7)}
    weights = {"w": np.random.default_rng(0).standard_normal((1024, 1024, 1, 1)).astype(np.float32)}
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    kernels, _ = make_kernels(graph_of(make_model(nodes, shapes, ["y"], weights)), load_rules(), INF1, is_quick=True)
    assert not any(isinstance(kernel.root, Transposition) for kernel in kernels)


def test_32_bit_integers_are_left_alone() -> None:
    """The array's float32 would not hold them exactly."""
    shapes = {"x0": (1, 12, 40, 40), "x1": (1, 12, 20, 20)}
    nodes, weights = [], {}
    for n, (_, _, rows, columns) in enumerate(shapes.values()):
        weights[f"shape{n}"] = np.array([1, rows * columns * ANCHORS, 4])
        nodes += [
            helper.make_node("Add", [f"x{n}", f"x{n}"], [f"a{n}"]),
            helper.make_node("Transpose", [f"a{n}"], [f"t{n}"], perm=[0, 2, 3, 1]),
            helper.make_node("Reshape", [f"t{n}", f"shape{n}"], [f"b{n}"]),
        ]
    nodes.append(helper.make_node("Concat", ["b0", "b1"], ["y"], axis=1))
    assert _transposed(make_model(nodes, shapes, ["y"], weights, dtype=TensorProto.INT32)) == [False, False]


@pytest.mark.parametrize("levels", [[(40, 40), (20, 20)], [(33, 70), (9, 17)], [(130, 24)]])
@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_outputs_agree_with_onnxruntime(levels: list[tuple[int, int]], chip: str) -> None:
    model = _boxes(*levels)
    rng = np.random.default_rng(len(levels))
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    found = run(compile_model(model, f"neuron/{chip}"), inputs, "strict")["y"]
    np.testing.assert_allclose(found, wanted, atol=0.03)  # bf16: a sum of up to 4, rounded


def test_rows_are_stored_whole() -> None:
    made = compile_model(_boxes((40, 40), (20, 20)), "neuron/inf1")
    names = {n: tensor for n, tensor in enumerate(made.program.tensors) if tensor.kind == "output"}
    stores = [
        node
        for _, node in made.program.instructions()
        if isinstance(node, DmaCopy) and isinstance(node.target, DramTile) and node.target.tensor in names
    ]
    assert [node.target.dims for node in stores] == [((40 * 12, 40), (1, 40 * 12)), ((20 * 12, 20), (1, 20 * 12))]


def _scores(columns: int) -> onnx.ModelProto:
    """A classifier's last layer, without a softmax; its result is read once more."""
    rng = np.random.default_rng(columns)
    weights = {"w": (rng.standard_normal((64, columns)) / 8).astype(np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["scores"]),
        helper.make_node("Tanh", ["scores"], ["y"]),
        helper.make_node("Exp", ["y"], ["z"]),
    ]
    return make_model(nodes, {"x": (1, 64)}, ["y", "z"], weights)


@pytest.mark.parametrize(("chip", "columns"), [("inf1", 1000), ("inf2", 1000), ("inf2", 130)])
def test_scores_are_stored_as_a_row(chip: str, columns: int) -> None:
    model = _scores(columns)
    graph = graph_of(model)
    kernels, partition_of = make_kernels(graph, load_rules(), load_device(chip))
    assert [partition_of[output] for output in graph.outputs] == [0, 0]
    assert any(isinstance(k.root, Transposition) for k in kernels)
    x = np.random.default_rng(1).standard_normal((1, 64)).astype(np.float32)
    check(model, {"x": x}, chip, "all")


def test_scores_stay_on_the_partitions_where_their_pieces_take_less_time() -> None:
    graph = graph_of(_scores(1000))
    quick = replace(INF1, dma_descriptor_ns=1)
    kernels, partition_of = make_kernels(graph, load_rules(), quick)
    assert [partition_of[output] for output in graph.outputs] == [1, 1]
    assert not any(isinstance(k.root, Transposition) for k in kernels if k.out in graph.outputs)


def test_heads_of_one_token_are_split_without_dram() -> None:
    """Its row is as good a way for them as a dimension of several elements."""
    rng = np.random.default_rng(2)
    weights = {"w": rng.standard_normal((64, 256)).astype(np.float32) / 8, "to": np.array([1, 1, 4, 64])}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["q"]),
        helper.make_node("Reshape", ["q", "to"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Softmax", ["t"], ["y"], axis=3),
    ]
    model = make_model(nodes, {"x": (1, 1, 64)}, ["y"], weights)
    kernels, _ = make_kernels(graph_of(model), load_rules(), load_device("inf2"))
    assert not any(kernel.out.kind == "scratch" for kernel in kernels)
    x = np.random.default_rng(3).standard_normal((1, 1, 64)).astype(np.float32)
    check(model, {"x": x}, "inf2", "all")


def _pooled_heads(heads: int, size: int, side: int = 12) -> onnx.ModelProto:
    """Tokens of an image times weights, whose heads a depthwise convolution then reads as images (as MViT does)."""
    rng, wide = np.random.default_rng(heads * size), heads * size
    weights = {
        "w": (rng.standard_normal((64, 2 * wide)) / 8).astype(np.float32), "b": np.zeros(1, np.float32) + 0.5,
        "parted": np.int64([side, side, 2, heads, size]), "first": np.int64(1),
        "pool": (rng.standard_normal((size, 1, 3, 3)) / 3).astype(np.float32),
    }  # fmt: skip
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["t"]), node("Add", ["t", "b"], ["a"]), node("Reshape", ["a", "parted"], ["p"]),
        node("Transpose", ["p"], ["turned"], perm=[2, 3, 4, 0, 1]), node("Gather", ["turned", "first"], ["k"], axis=0),
        node("Conv", ["k", "pool"], ["y"], group=size, pads=[1, 1, 1, 1], strides=[2, 2]),
    ]  # fmt: skip
    return make_model(nodes, {"x": (side * side, 64)}, ["y"], weights)


@pytest.mark.parametrize(("heads", "size"), [(2, 96), (3, 96), (4, 160), (2, 80), (3, 48)])
@pytest.mark.parametrize("precision", [("inf1", "all"), ("inf2", "none")], ids="-".join)
def test_heads_that_lie_across_chunks_of_partitions(heads: int, size: int, precision: tuple[str, str]) -> None:
    model = _pooled_heads(heads, size)
    check(model, {"x": np.random.default_rng(7).standard_normal((144, 64)).astype(np.float32)}, *precision)


@pytest.mark.parametrize(("size", "is_in_pieces"), [(96, True), (80, False)])
def test_heads_are_moved_one_by_one_where_engines_reach_each(size: int, is_in_pieces: bool) -> None:
    """Of 96 channels, the first of which engines can read; that of the second 80 none can."""
    kernels, _ = make_kernels(graph_of(_pooled_heads(2, size)), tuple(load_rules()), load_device("inf2"))
    moves = [k for k in kernels if isinstance(k.expr, Load) and k.root is None and ".pad_temp" in k.out.name]
    assert (len(moves) == 2 and not any(k.by_dma for k in moves)) == is_in_pieces


def _patches(rows: int, columns: int, side: int, colours: int, width: int) -> onnx.ModelProto:
    """Tokens as the pixels of patches, which are put beside and below each other as one image."""
    rng = np.random.default_rng(rows * columns)
    weights = {
        "w": (rng.standard_normal((width, side * side * colours)) / width**0.5).astype(np.float32),
        "apart": np.array([1, rows, columns, side, side, colours]),
        "image": np.array([1, colours, rows * side, columns * side]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Reshape", ["m", "apart"], ["a"]),
        helper.make_node("Transpose", ["a"], ["t"], perm=[0, 5, 1, 3, 2, 4]),
        helper.make_node("Reshape", ["t", "image"], ["y"]),
    ]
    return make_model(nodes, {"x": (1, rows * columns, width)}, ["y"], weights)


@settings(max_examples=8, deadline=None)
@given(
    rows=st.integers(1, 15), columns=st.integers(1, 15), side=st.sampled_from([2, 4, 8]), colours=st.integers(1, 4),
    width=st.sampled_from([24, 160]), precision=st.sampled_from(PRECISIONS),
)  # fmt: skip
@example(rows=14, columns=14, side=16, colours=3, width=64, precision=("inf2", "all"))
def test_patches_become_an_image(
    rows: int, columns: int, side: int, colours: int, width: int, precision: tuple[str, str]
) -> None:
    model = _patches(rows, columns, side, colours, width)
    check(model, random_inputs(model), *precision)


def test_pixels_are_in_order_before_they_are_stored() -> None:
    """Sixteen pixels that lie beside each other go at once, not one by one: 405 us."""
    report = tvm_neuron.report(tvm_neuron.compile(_patches(14, 14, 16, 3, 512), target="neuron/inf2"))
    assert report.latency_us < 15 * report.roofline_us


def _pyramid(channels: int) -> onnx.ModelProto:
    """Maps of three levels beside each other, in the smaller ones each pixel repeated, of any number of channels."""
    rng, times = np.random.default_rng(channels), (4, 2, 1)
    weights = {f"w{n}": (rng.standard_normal((channels, 32, 3, 3)) / 18).astype(np.float32) for n in times}
    weights |= {f"t{n}": np.float32([1, 1, n, n]) for n in times}
    weights["v"] = (rng.standard_normal((8, 3 * channels, 3, 3)) / 24).astype(np.float32)
    nodes = []
    for n in times:
        nodes += [helper.make_node("Conv", [f"x{n}", f"w{n}"], [f"c{n}"], pads=[1] * 4),
                  helper.make_node("Resize", [f"c{n}", "", f"t{n}"], [f"r{n}"], nearest_mode="floor")]  # fmt: skip
    nodes.append(helper.make_node("Concat", [f"r{n}" for n in times], ["both"], axis=1))
    nodes.append(helper.make_node("Conv", ["both", "v"], ["y"], pads=[1] * 4))
    return make_model(nodes, {f"x{n}": (1, 32, 64 // n, 80 // n) for n in times}, ["y"], weights)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("channels", [20, 24])
def test_pixels_are_repeated_before_they_are_moved(channels: int, precision: tuple[str, str]) -> None:
    """An engine repeats them; the DMA would take a descriptor for each, 815 us for a map of 64 x 80."""
    model = _pyramid(channels)
    check(model, random_inputs(model), *precision)
    report = tvm_neuron.report(tvm_neuron.compile(model, target=f"neuron/{precision[0]}"))
    assert report.latency_us < 14 * report.roofline_us
