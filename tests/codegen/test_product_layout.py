"""How the result of a product lies is found from its readers, each of which is looked at once."""

import pytest

from tvm_neuron.codegen.passes.product_layout import LOOKAHEAD, choose_result_dim
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block, Graph, Origin
from tvm_neuron.schedule.tensor import Tensor

ORIGIN = Origin("layer", "Op")
ROWS, PIECES, DEPTH = 80, 40, 32


def _product(name: str, left: Load, right: Load, axes: tuple[Axis, ...]) -> Block:
    rows, columns, _ = axes
    out = Tensor(name, (rows.extent, columns.extent), "float32")
    return Block(ORIGIN, axes, out, (Index(rows), Index(columns)), Apply("multiply", (left, right)), "add")


def _in_pieces(source: Tensor, level: int) -> list[Block]:
    """A function of a tensor, some rows at a time, each by a block of its own."""
    out = Tensor(f"level{level}", source.shape, source.dtype)
    column, count = Axis("c", source.shape[1]), ROWS // PIECES
    blocks = []
    for piece in range(PIECES):
        row = Axis(f"r{piece}", count)
        index: tuple[Expr, ...] = (Apply("add", (Index(row), Num(count * piece))), Index(column))
        blocks.append(Block(ORIGIN, (row, column), out, index, Apply("exp", (Load(source, index),))))
    return blocks


def _graph(summed: int) -> tuple[Graph, Block]:
    """A product, functions of it in pieces, and a product that sums the shorter one of its dimensions."""
    count = 96 if summed == 0 else 64
    a, b, c = (Tensor(name, (size, size), "float32", "input") for name, size in (("a", ROWS), ("b", count), ("c", 96)))
    rows, columns, depth = Axis("m", ROWS), Axis("n", count), Axis("k", DEPTH, True)
    left, right = Load(a, (Index(depth), Index(rows))), Load(b, (Index(depth), Index(columns)))
    first = _product("first", left, right, (rows, columns, depth))
    blocks = [first]
    for level in range(LOOKAHEAD):
        blocks += _in_pieces(blocks[-1].output, level)
    kept, over, other = Axis("m", (ROWS, count)[1 - summed]), Axis("k", (ROWS, count)[summed], True), Axis("n", 8)
    read = (Index(over), Index(kept)) if summed == 0 else (Index(kept), Index(over))
    last = _product("last", Load(blocks[-1].output, read), Load(c, (Index(over), Index(other))), (kept, other, over))
    return Graph([a, b, c], [last.output], [*blocks, last]), first


@pytest.mark.parametrize("summed", [0, 1])
def test_of_many_pieces_each_is_looked_at_once(summed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, first = _graph(summed)
    readers, asked = graph.readers, []

    def counted(tensor: Tensor) -> list[Block]:
        asked.append(tensor)
        assert len(asked) <= 2 * (LOOKAHEAD + 1), "40 pieces in each of six levels: 4 * 10^9 ways"
        return readers(tensor)

    monkeypatch.setattr(graph, "readers", counted)
    assert choose_result_dim(first, graph) == summed
