"""roles: what a block is (contraction, reduction, map, fill, move) and which axes play which part in it."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import GATHER, SCAN, Apply, Axis, Expr, Index, Load, Num, axes_of
from tvm_neuron.schedule.graph import Block, linear_indices
from tvm_neuron.schedule.tensor import Tensor


def factors(expr: Expr) -> Iterator[Expr]:
    """The factors of a product."""
    if isinstance(expr, Apply) and expr.op == "multiply":
        for arg in expr.args:
            yield from factors(arg)
    else:
        yield expr


def data_factor(block: Block) -> Load | None:
    """The one factor of a sum of products that is known only at run time, the others being constants."""
    if block.combine != "add":
        return None
    varying = [part for part in factors(block.expr) if not _is_constant(part)]
    return varying[0] if len(varying) == 1 and isinstance(varying[0], Load) else None


def _is_constant(part: Expr) -> bool:
    return isinstance(part, Num) or (isinstance(part, Load) and part.tensor.value is not None)


def is_constant_contraction(block: Block) -> bool:
    """Whether the block sums data times weights that are known at compile time, over at least one axis of theirs."""
    data = data_factor(block)
    return data is not None and any(isinstance(part, Load) and part is not data for part in factors(block.expr))


def product_factors(block: Block) -> tuple[Load, Load] | None:
    """The two factors of a sum of products that are known only at run time, if one of them has an axis of its own.

    Without one, every element that is read is multiplied once, and the PE array would be of no use.
    """
    if block.combine != "add" or block.init:
        return None
    varying = [part for part in factors(block.expr) if not isinstance(part, Num)]
    if len(varying) != 2 or not all(isinstance(part, Load) and part.tensor.value is None for part in varying):
        return None
    left, right = (part for part in varying if isinstance(part, Load))
    spatial = {axis for axis in block.spatial if axis.extent > 1}
    own = (set(axes_of(left)) ^ set(axes_of(right))) & spatial
    return (left, right) if own else None


def is_forward(load: Load) -> bool:
    """Whether it reads along sums of axes, and, unless it is known at compile time, never backwards along one."""
    maps = linear_indices(load.indices)
    if maps is None:
        return False
    return load.tensor.value is not None or all(step > 0 for part in maps for step in part.terms.values())


def is_diagonal(load: Load, dim: int | None = None) -> bool:
    """Whether an axis steps along two dimensions at once, one of them `dim` if given, as `i` does in `x[i, i + 1]`.

    An access pattern is the same in all partitions: with such an axis on them, no engine can follow.
    """
    maps = linear_indices(load.indices) or ()
    counts = Counter(axis for part in maps for axis in part.terms)
    among = counts if dim is None or not maps else maps[dim].terms
    return any(counts[axis] > 1 for axis in among)


@dataclass(frozen=True)
class Gathered:
    """What a block gathers: the data with 0 as index of `dims`, and where along these, as one, each element lies."""

    data: Load
    positions: Load
    dims: tuple[int, ...]


def gathered(block: Block) -> Gathered | None:
    """What the block gathers from positions known at run time; None for any other block."""
    match block.expr:
        case Apply(op, (Load() as data, Load() as positions)) if op.startswith(GATHER):
            return Gathered(data, positions, tuple(map(int, op.removeprefix(GATHER).split("."))))
    return None


@dataclass(frozen=True)
class Scanned:
    """A recurrence along an axis of what a block writes, and the summed axis along which its operands lie."""

    factor: Num | Load
    term: Num | Load
    initial: Num | Load
    along: Axis
    counted: Axis

    @property
    def loads(self) -> list[Load]:
        """Its operands in memory."""
        return [part for part in (self.term, self.factor, self.initial) if isinstance(part, Load)]


def scanned(block: Block) -> Scanned | None:
    """The recurrence that the block is; None for any other block."""
    match block.expr:
        case Apply(
            op, (Num() | Load() as factor, Num() | Load() as term, Num() | Load() as initial, Index(at), Index(counted))
        ) if op == SCAN and block.combine:
            return Scanned(factor, term, initial, at, counted)
    return None


def constant_load(block: Block, across: Collection[Axis]) -> Load | None:
    """What a block of constants stores, as one table over the axes along which it changes; None for any other block.

    And over the longest one that is not among those `across` the partitions, and those within it: a row is moved in
    one piece.
    """
    if any(load.tensor.value is None for load in block.loads()):
        return None
    within = [axis for axis in block.spatial if axis not in across] or block.spatial
    longest = max(range(len(within)), key=lambda place: within[place].extent, default=0)
    kept = {*axes_of(block.expr), *within[longest:]}
    axes = tuple(axis for axis in block.spatial if axis in kept)
    values = np.broadcast_to(evaluate(block.expr, axes), [axis.extent for axis in axes])
    return table_load(f"{block.output.name}.table", values, axes, block.output.dtype)


def table_load(name: str, values: np.ndarray, axes: Sequence[Axis], dtype: str = "float32") -> Load:
    """A constant with a dimension for each of the axes, one of a single element without any: memory has no numbers."""
    table = np.ascontiguousarray(values)
    return Load(Tensor(name, table.shape, dtype, value=table), tuple(map(Index, axes)) or (Num(0),))


def is_wide_copy(expr: Expr) -> bool:
    """Whether it only copies integers of which float32 may lose digits."""
    if not isinstance(expr, Load) or expr.tensor.dtype not in ("int32", "int64"):
        return False
    value = expr.tensor.value
    return value is None or bool(value.size and abs(value).max() > 2**24)
