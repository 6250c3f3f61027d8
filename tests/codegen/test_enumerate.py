"""Reads at static positions (gathers, shuffles, resizes, reflections, reversals) on the core, against NumPy."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.graphs import graph_of as legalised
from tests.codegen.on_core import on_core
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.function import compile_graph
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.passes import enumerate as passes_enumerate
from tvm_neuron.errors import UnschedulableError
from tvm_neuron.hw import load_device
from tvm_neuron.isa import DmaCopy, DramTile
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim import Machine

SHAPE = (2, 36, 5, 6)
POSITIONS = {
    "backwards": lambda n: np.arange(n)[::-1],
    "backwards by two": lambda n: np.arange(n)[::-2],
    "one and a half times": lambda n: np.arange(n * 3 // 2) * 2 // 3,
    "reflected": lambda n: np.pad(np.arange(n), 1, "reflect") if n > 1 else np.arange(n),
    "rolled": lambda n: np.roll(np.arange(n), 1),
    "shuffled": lambda n: np.random.default_rng(n).permutation(n),
    "a few, some twice": lambda n: np.array([n - 1, 0, 0, n // 2]),
}


def graph_of(positions: np.ndarray, dim: int, with_arithmetic: bool, shape: tuple[int, ...] = SHAPE) -> Graph:
    """y = x taken at `positions` of dimension `dim`; with arithmetic, of 2 x, and 1 added."""
    x = Tensor("x", shape, "float32", "input")
    y = Tensor("y", tuple(len(positions) if d == dim else n for d, n in enumerate(shape)), "float32", "output")
    table = Tensor("positions", positions.shape, "int64", value=positions)
    blocks, source = [], x
    if with_arithmetic:
        source = Tensor("doubled", shape, "float32")
        axes = tuple(Axis(f"a{d}", n) for d, n in enumerate(shape))
        index: tuple[Expr, ...] = tuple(Index(axis) for axis in axes)
        twice = Apply("add", (Load(x, index), Load(x, index)))
        blocks.append(Block(Origin("twice", "Add"), axes, source, index, twice))
    axes = tuple(Axis(f"d{d}", n) for d, n in enumerate(y.shape))
    into: tuple[Expr, ...] = tuple(Index(axis) for axis in axes)
    taken: Expr = Load(source, tuple(Load(table, (part,)) if d == dim else part for d, part in enumerate(into)))
    expr = Apply("add", (taken, Num(1.0))) if with_arithmetic else taken
    return Graph([x], [y], [*blocks, Block(Origin("take", "Gather"), axes, y, into, expr)])


def run(graph: Graph, x: np.ndarray, chip: str, mode: str) -> np.ndarray:
    device = load_device(chip)
    neff = compile_graph(graph, "test", device, BuildOptions(device=chip))
    return Machine(neff.program, device, neff.weights).run({"x": x}, mode)["y"]


@pytest.mark.parametrize("with_arithmetic", [False, True])
@pytest.mark.parametrize("dim", range(4))
@pytest.mark.parametrize("name", POSITIONS)
def test_positions_on_every_axis(name: str, dim: int, with_arithmetic: bool) -> None:
    positions = POSITIONS[name](SHAPE[dim])
    x = np.random.default_rng(0).integers(-8, 8, SHAPE).astype(np.float32)
    expected = np.take(2 * x, positions, dim) + 1 if with_arithmetic else np.take(x, positions, dim)
    for chip, mode in (("inf1", "nest"), ("inf2", "strict")):
        got = run(graph_of(positions, dim, with_arithmetic), x, chip, mode)
        np.testing.assert_array_equal(got, expected)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_random_positions(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=2, max_size=4)))
    dim = data.draw(st.integers(0, len(shape) - 1))
    positions = np.array(data.draw(st.lists(st.integers(0, shape[dim] - 1), min_size=1, max_size=12)))
    x = np.random.default_rng(0).integers(-8, 8, shape).astype(np.float32)
    with_arithmetic = data.draw(st.booleans())
    expected = np.take(2 * x, positions, dim) + 1 if with_arithmetic else np.take(x, positions, dim)
    got = run(graph_of(positions, dim, with_arithmetic, shape), x, "inf1", "strict")
    np.testing.assert_array_equal(got, expected)


def test_periodic_positions_are_few_pieces() -> None:
    graph = graph_of(np.arange(300) * 2 // 3, 1, False, (1, 200, 4))
    passes_enumerate.enumerate_indices(graph)
    assert len(graph.blocks) == 2  # each third position repeats the one before it


def skewed(before: tuple[int, int], after: tuple[int, int], heads: int = 2) -> onnx.ModelProto:
    """Rows of one length become rows of another, between sums; as relative positions are shifted."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["twice"]),
        helper.make_node("Reshape", ["twice", "shape"], ["skew"]),
        helper.make_node("Add", ["skew", "one"], ["y"]),
    ]
    weights = {"shape": np.int64([heads, *after]), "one": np.float32(1)}
    return make_model(nodes, {"x": (heads, *before)}, ["y"], weights)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    ("before", "after"), [((81, 80), (80, 81)), ((7, 90), (90, 7)), ((150, 130), (130, 150)), ((3, 5000), (5000, 3))]
)
def test_rows_of_another_length(before: tuple[int, int], after: tuple[int, int], chip: str) -> None:
    x = np.random.default_rng(2).integers(-8, 8, (2, *before)).astype(np.float32)
    (found,) = on_core(skewed(before, after), {"x": x}, chip)
    np.testing.assert_array_equal(found, (2 * x).reshape(2, *after) + 1)


@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_whole_numbers_and_truths_in_rows_of_another_length(dtype: str) -> None:
    x = np.random.default_rng(3).integers(0, 2 if dtype == "bool" else 2**30, (2, 81, 80)).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Slice", ["r", "from", "to"], ["y"])]
    weights = {"shape": np.int64([2, 80, 81]), "from": np.int64([0, 2]), "to": np.int64([2, 79])}
    (found,) = on_core(make_model(nodes, {"x": x.shape}, ["y"], weights, dtype=kind), {"x": x}, "inf2")
    np.testing.assert_array_equal(found, x.reshape(2, 80, 81)[:, 2:79])


def test_rows_of_another_length_go_by_way_of_one_row() -> None:
    graph = legalised(skewed((513, 512), (512, 513)), "inf2")
    passes_enumerate.enumerate_indices(graph)
    assert [tensor.shape for tensor in graph.tensors() if tensor.kind == "scratch"] == [(2 * 513 * 512,)]
    assert len(graph.blocks) < 6
    few = legalised(skewed((5, 4), (4, 5)), "inf2")
    passes_enumerate.enumerate_indices(few)
    assert not any(tensor.kind == "scratch" for tensor in few.tensors())


def test_heads_of_rows_of_another_length_are_stored_row_by_row() -> None:
    """As sliding windows of attention have them: 512 numbers beside each other, not element by element."""
    program = compile_model(skewed((513, 512), (512, 513), heads=4)).program
    copies = [i.target for _, i in program.instructions() if isinstance(i, DmaCopy)]
    tiles = [t for t in copies if isinstance(t, DramTile) and program.tensors[t.tensor].kind == "scratch"]
    assert tiles
    assert all(tile.dims[-1] == (1, 512) for tile in tiles)


def test_positions_outside_are_refused() -> None:
    with pytest.raises(UnschedulableError, match="reads element 36 of a dimension of x that has 36"):
        passes_enumerate.enumerate_indices(graph_of(np.array([1, 36]), 1, False))


def test_positions_without_order_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes_enumerate, "MAX_PIECES", 3)
    with pytest.raises(UnschedulableError, match="in more than 3 pieces"):
        passes_enumerate.enumerate_indices(graph_of(np.array([0, 5, 5, 3, 9, 9, 1]), 1, False))
