"""linear: div and mod of mixed-radix sums are sums of axes again, once the axes are split where it says."""

import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Num
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.linear import CutAxisError, Linear, NotLinearError, SplitAxisError, linear
from tvm_neuron.schedule.tensor import Tensor

SIZES = st.lists(st.integers(1, 4), min_size=2, max_size=5)


def at(expr: Expr, values: dict[Axis, int]) -> int:
    """The expression at one point, by Python's integers."""
    match expr:
        case Num(value):
            return int(value)
        case Index(axis):
            return values.get(axis, 0)
        case Apply(op, (a, b)):
            left, right = at(a, values), at(b, values)
            if op in ("floordiv", "floormod"):
                return left // right if op == "floordiv" else left % right
            return {"add": left + right, "multiply": left * right}[op]
    raise AssertionError(expr)


def flat(parts: list[Expr], shape: list[int]) -> Expr:
    """The index into an array of `shape` as one into a flat array."""
    total: Expr = Num(0)
    for part, extent in zip(parts, shape, strict=True):
        total = Apply("add", (Apply("multiply", (total, Num(extent))), part))
    return total


def apart(index: Expr, shape: list[int]) -> list[Expr]:
    """The inverse of `flat`."""
    parts: list[Expr] = []
    step = 1
    for extent in reversed(shape):
        parts.append(Apply("floormod", (Apply("floordiv", (index, Num(step))), Num(extent))))
        step *= extent
    return parts[::-1]


def joined(sizes: list[int], random: Random) -> list[int]:
    """A coarser shape: some neighbours multiplied."""
    shape = [sizes[0]]
    for extent in sizes[1:]:
        if random.random() < 0.5:
            shape[-1] *= extent
        else:
            shape.append(extent)
    return shape


@given(SIZES, st.integers(0, 99))
def test_reshapes_and_transposes_become_sums(sizes: list[int], seed: int) -> None:
    """A tensor read through a reshape, a transpose and another reshape; compared at every point with NumPy."""
    random = Random(seed)
    before, after = joined(sizes, random), sizes.copy()
    order = random.sample(range(len(after)), len(after))
    moved = [after[d] for d in order]
    last = joined(moved, random)
    axes = [Axis(f"a{d}", extent) for d, extent in enumerate(last)]
    turned = apart(flat([Index(axis) for axis in axes], last), moved)
    indices = apart(flat([turned[order.index(d)] for d in range(len(order))], after), before)
    tensor = Tensor("y", tuple(before), "float32")
    block = canonical(Block(Origin("y", "Reshape"), tuple(axes), tensor, tuple(indices), Num(1.0)))
    assert all(linear(part) for part in block.index)  # nothing is left to enumerate
    numbers = np.arange(np.prod(sizes)).reshape(before).reshape(after).transpose(order).reshape(last)
    found = []
    for point in itertools.product(*(range(axis.extent) for axis in block.axes)):
        here = dict(zip(block.axes, point, strict=True))
        found.append(np.ravel_multi_index([at(part, here) for part in block.index], before))
    assert found == numbers.ravel().tolist()


def test_a_split_says_where() -> None:
    axis = Axis("c", 12)
    with pytest.raises(SplitAxisError) as caught:
        linear(Apply("floordiv", (Index(axis), Num(4))))
    assert (caught.value.axis, caught.value.inner) == (axis, 4)


@pytest.mark.parametrize(
    "expr",
    [
        Apply("floordiv", (Index(Axis("c", 10)), Num(4))),
        Apply("multiply", (Index(Axis("a", 3)), Index(Axis("b", 3)))),
        Apply("min", (Index(Axis("c", 10)), Num(4))),
    ],
)
def test_what_is_no_sum(expr: Expr) -> None:
    with pytest.raises(NotLinearError):
        linear(expr)


def test_what_is_known_to_be_smaller_vanishes() -> None:
    axis = Axis("c", 4)
    assert linear(Apply("min", (Index(axis), Num(3)))) == Linear(0, {axis: 1})
    assert linear(Apply("floormod", (Apply("add", (Index(axis), Num(8))), Num(4)))) == Linear(0, {axis: 1})
    assert linear(Apply("floordiv", (Apply("add", (Index(axis), Num(8))), Num(4)))) == Linear(2)


def test_where_an_axis_has_to_be_cut_first() -> None:
    """Of 10 channels read as two rows of 4 the last two belong to neither."""
    axis = Axis("c", 10)
    with pytest.raises(CutAxisError) as caught:
        linear(Apply("floordiv", (Index(axis), Num(4))))
    assert (caught.value.axis, caught.value.at) == (axis, 8)
