"""What a norm computes of each row's sums, and how far elements lie from its mean, is computed once."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from onnx import helper

from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen import simplify
from tvm_neuron.codegen.passes import spread_sums
from tvm_neuron.codegen.passes.norm_parts import share_norm_parts
from tvm_neuron.isa import Activation, Matmul, ScalarTensorTensor, TensorTensor, Tile
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.sim import time_program

ORIGIN = Origin("LayerNormalization", "norm")
"""Rows of 256 elements, of which all partitions have a row's sums."""
X = Tensor("x", (64, 256), "float32", "input")
MEAN = Tensor("mean", (256, 64), "float32", is_spread=True)
SQUARES = Tensor("squares", (256, 64), "float32", is_spread=True)


def elementwise(name: str, expr_of: Callable[[Expr, Expr], Expr], kind: str = "temp") -> Block:
    """[64, 256] elements; the expression is of their row and column."""
    axes = Axis("row", 64), Axis("column", 256)
    index: tuple[Expr, ...] = tuple(map(Index, axes))
    return Block(ORIGIN, axes, Tensor(name, X.shape, "float32", kind), index, expr_of(*index))


def difference(row: Expr, column: Expr) -> Expr:
    return Apply("add", (Load(X, (row, column)), Load(MEAN, (column, row))))


def scale(row: Expr, column: Expr) -> Expr:
    return Apply("rsqrt", (Apply("add", (Load(SQUARES, (column, row)), Num(1e-5))),))


def square(row: Expr, column: Expr) -> Expr:
    return Apply("multiply", (difference(row, column), difference(row, column)))


def normed(row: Expr, column: Expr) -> Expr:
    return Apply("multiply", (difference(row, column), scale(row, column)))


def shared(*blocks: Block) -> list[Block]:
    graph = Graph([X], [blocks[-1].output], blocks)
    share_norm_parts(graph, [MEAN, SQUARES])
    return graph.blocks


def test_differences_and_values_of_rows_are_tensors() -> None:
    differences, squares, rows, norm = shared(elementwise("s", square), elementwise("n", normed, "output"))
    assert differences.sources() == [X, MEAN]
    assert squares.sources() == [differences.output]
    assert rows.output.is_spread
    assert (rows.output.shape, rows.sources()) == (SQUARES.shape, [SQUARES])
    assert norm.sources() == [differences.output, rows.output]


def test_a_difference_that_is_computed_once_stays_where_it_is() -> None:
    def moved(row: Expr, column: Expr) -> Expr:
        return Apply("exp", (difference(row, column),))

    blocks = [elementwise("s", moved, "output")]
    assert shared(*blocks) == blocks


def test_differences_of_other_rows_are_other_ones() -> None:
    """The mean of the row with the number of the column: not the same difference, though of the same tensors."""
    other = Tensor("z", (64, 64), "float32", "input")
    mean = Tensor("mean", (64, 64), "float32", is_spread=True)
    blocks = []
    for name, turned in (("a", False), ("b", True)):
        axes = Axis("row", 64), Axis("column", 64)
        index: tuple[Expr, ...] = tuple(map(Index, axes))
        loads = Load(other, index), Load(mean, index[::-1] if turned else index)
        blocks.append(Block(ORIGIN, axes, Tensor(name, (64, 64), "float32"), index, Apply("add", loads)))
    graph = Graph([other], [], blocks)
    share_norm_parts(graph, [mean])
    assert graph.blocks == blocks


def test_only_functions_of_sums_are_computed_apart() -> None:
    """A sum times a number costs nothing where it is read."""

    def scaled(row: Expr, column: Expr) -> Expr:
        return Apply("multiply", (Load(X, (row, column)), Apply("multiply", (Load(SQUARES, (column, row)), Num(0.5)))))

    blocks = [elementwise("n", scaled, "output")]
    assert shared(*blocks) == blocks


LAYER_NORM = [
    helper.make_node("MatMul", ["x", "w"], ["h"]),
    helper.make_node("Tanh", ["h"], ["t"]),
    helper.make_node("MatMul", ["t", "w"], ["u"]),
    helper.make_node("Add", ["t", "u"], ["s"]),
    helper.make_node("LayerNormalization", ["s", "gamma", "beta"], ["n"]),
    helper.make_node("MatMul", ["n", "w"], ["y"]),
]


def test_means_stay_in_psum_and_all_is_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    """ACT has nothing to do for the mean, which the array makes as POOL reads it, of elements over their number."""
    random = np.random.default_rng(4)
    weights = {"w": random.standard_normal((384, 384)).astype(np.float32) / 16}
    weights |= {name: random.standard_normal(384).astype(np.float32) for name in ("gamma", "beta")}
    model = make_model(LAYER_NORM, {"x": (1, 50, 384)}, ["y"], weights)
    found = compile_model(model, "neuron/inf2")
    sums = [each.psum for _, each in found.program.instructions() if _is_sum(each)]
    operands = [(each.left, each.right) for _, each in found.program.instructions() if isinstance(each, TensorTensor)]
    read = [tile for pair in operands for tile in pair if isinstance(tile, Tile) and tile.space == "psum"]
    assert any(one.offset == other.offset for one, other in product(sums, read))
    monkeypatch.setattr(spread_sums, "share_norm_parts", lambda *_: None)
    monkeypatch.setattr(simplify, "scale_ones", lambda kernels, *_: kernels)
    other = compile_model(model, "neuron/inf2")
    assert time_program(found.program, found.device).total_ps < time_program(other.program, other.device).total_ps


def test_what_scales_rows_lies_where_pool_reads_it_beside_them() -> None:
    """In PSUM: POOL reads two operands at once that come from different memories, and differences lie in SBUF."""
    random = np.random.default_rng(5)
    weights = {"w": random.standard_normal((384, 384)).astype(np.float32) / 16}
    weights |= {name: random.standard_normal(384).astype(np.float32) for name in ("gamma", "beta")}
    found = compile_model(make_model(LAYER_NORM, {"x": (1, 50, 384)}, ["y"], weights), "neuron/inf2")
    steps = [each for _, each in found.program.instructions()]
    (scale,) = {each.result for each in steps if isinstance(each, Activation) and each.function == "rsqrt"}
    readers = [each for each in steps if isinstance(each, ScalarTensorTensor) and each.right.space == "psum"]
    assert scale.space == "psum"
    assert {each.left.space for each in readers if each.right.offset == scale.offset} == {"sbuf"}


def _is_sum(instruction: object) -> bool:
    return isinstance(instruction, Matmul) and instruction.moving.dtype == "float32"
