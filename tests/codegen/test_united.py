"""Axes that were split only to be counted together again become one."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tvm_neuron.codegen.passes.canonical import split_axis, united
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Axis, Index, Load
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

EXTENTS = st.lists(st.sampled_from([2, 3, 4, 6, 8]), min_size=1, max_size=3)


def _turned(extents: list[int]) -> Block:
    """A tensor with its dimensions the other way around."""
    axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(extents))
    index = tuple(Index(axis) for axis in axes)
    source = Tensor("x", tuple(reversed(extents)), "float32")
    return Block(
        Origin("move", "Transpose"), axes, Tensor("y", tuple(extents), "float32"), index, Load(source, index[::-1])
    )


def _pairs(block: Block) -> set[tuple[int, ...]]:
    """Where each element is written, and where it is read."""
    assert isinstance(block.expr, Load)
    maps = [*(linear_indices(block.index) or ()), *(linear_indices(block.expr.indices) or ())]
    found = set()
    for values in product(*(range(axis.extent) for axis in block.axes)):
        at = dict(zip(block.axes, values, strict=True))
        found.add(tuple(part.const + sum(step * at[axis] for axis, step in part.terms.items()) for part in maps))
    return found


@given(EXTENTS, st.data())
def test_of_split_axes_as_many_are_left_as_there_were(extents: list[int], data: st.DataObject) -> None:
    whole = block = _turned(extents)
    for _ in range(data.draw(st.integers(0, 3))):
        places = [(axis, n) for axis in block.axes for n in range(2, axis.extent) if axis.extent % n == 0]
        if places:
            block = split_axis(block, *data.draw(st.sampled_from(places)))
    found = united(block)
    assert [axis.extent for axis in found.axes] == [axis.extent for axis in whole.axes]
    assert _pairs(found) == _pairs(whole)


def test_axes_that_are_counted_apart_stay() -> None:
    rows, columns = Axis("r", 4), Axis("c", 5)
    index = (Linear(0, {rows: 5, columns: 1}).expr(),)
    apart = Load(Tensor("x", (4, 5), "float32"), (Index(rows), Index(columns)))
    block = Block(Origin("move", "Reshape"), (rows, columns), Tensor("y", (20,), "float32"), index, apart)
    assert united(block) is block
