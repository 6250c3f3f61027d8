"""ByArray: moves from some partitions to others by the PE array, times ones where a channel is to go.

A DMA would bring them to device memory and back. Parts of heads or of a concatenation begin anywhere, and no engine
reads from any partition on: the array adds up all partitions, and ones choose among them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.errors import UnschedulableError
from tvm_neuron.schedule.evaluate import evaluate
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.operations import PARTITION_START_STEP
from tvm_neuron.schedule.roles import is_constant_contraction, product_factors
from tvm_neuron.schedule.rule import Context, Rule, apply_rules
from tvm_neuron.schedule.tensor import Tensor

_MOST = 512
"""Channels on either side: of more, nearly all that is multiplied would be zeros."""

_FINITE = frozenset(("add", "subtract", "multiply", "max", "min", "sigmoid", "tanh", "gelu", "silu", "relu"))
"""What makes no infinity of numbers that are far from it."""


@dataclass
class ByArray:
    """Has the array do moves of which all that it adds up is finite: of what was summed over channels before.

    If something there is infinite, so is all that was made of it.
    """

    graph: Graph
    rules: Sequence[Rule]
    context: Context
    ones: dict[bytes, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mixed = Mixed(self.graph)

    def block(self, move: Block, source: Tensor) -> Block | None:
        """The move, of `source` or a copy of it, as a sum; None if there is none that a rule takes."""
        load = moved_load(move)
        is_within = load is not None and load.tensor.kind == move.output.kind == "temp"
        found = _by_array(move, load, self.context) if load and is_within else None
        if found is None or not self.mixed.holds(source):
            return None
        try:
            apply_rules(found, self.rules, self.context)
        except UnschedulableError:
            return None
        return _sharing(found, self.ones)


def _by_array(block: Block, load: Load, context: Context) -> Block | None:
    """The move as a sum over all channels; None if channels go to different places along free dimensions."""
    maps, out_maps = linear_indices(load.indices), linear_indices(block.index)
    source, target = load.tensor, block.output
    if maps is None or out_maps is None or source.dtype != target.dtype or not source.dtype.startswith("float"):
        return None
    if target.is_spread:  # of which one chunk of partitions does for all
        return None
    here, there = out_maps[context.partition_of[target]], context.partition_of[source]
    rows = [axis for axis in block.axes if axis in here.terms]
    low, high = maps[there].span
    depth = high - low + 1
    others = {axis for d, part in enumerate(maps) if d != there for axis in part.terms}
    if not set(maps[there].terms) <= set(rows) or others & set(rows) or here.const % PARTITION_START_STEP:
        return None
    shape = [axis.extent for axis in rows]
    if depth > _MOST or int(np.prod(shape)) > _MOST:
        return None
    places = np.broadcast_to(evaluate(maps[there].expr(), rows), shape).ravel() - low
    values = np.zeros((depth, places.size), np.float32)
    values[places, np.arange(places.size)] = 1
    ones = Tensor("ones", (depth, *shape), "float32", value=values.reshape(depth, *shape))
    summed = Axis("k", depth, is_reduction=True)
    along: Expr = Apply("add", (Index(summed), Num(low)))
    read = Load(source, tuple(along if d == there else part for d, part in enumerate(load.indices)))
    expr = Apply("multiply", (read, Load(ones, (Index(summed), *map(Index, rows)))))
    return canonical(Block(block.origin, (*block.axes, summed), target, block.index, expr, "add"))


def _sharing(block: Block, known: dict[bytes, Tensor]) -> Block:
    """The block with ones that another one has, if they are the same."""
    match block.expr:
        case Apply(op, (read, Load(ones, indices))):
            assert ones.value is not None
            key = repr(ones.shape).encode() + ones.value.tobytes()
            return block.with_expr(Apply(op, (read, Load(known.setdefault(key, ones), indices))))
    raise AssertionError(block.expr)


@dataclass
class Mixed:
    """Which tensors are all made of sums over channels, by arithmetic that does not leave the finite."""

    graph: Graph
    known: dict[Tensor, bool] = field(default_factory=dict)

    def holds(self, tensor: Tensor) -> bool:
        """Whether that is so for a tensor."""
        if tensor not in self.known:
            self.known[tensor] = False
            writers = self.graph.writers(tensor)
            self.known[tensor] = bool(writers) and all(map(self._is_made_so, writers))
        return self.known[tensor]

    def _is_made_so(self, block: Block) -> bool:
        if is_constant_contraction(block) or product_factors(block):
            return True
        varying = [load.tensor for load in block.loads() if load.tensor.value is None]
        return bool(varying) and _is_finite(block.expr) and all(map(self.holds, varying))


def _is_finite(expr: Expr) -> bool:
    match expr:
        case Num(value):
            return bool(np.isfinite(value))
        case Load(tensor, _):
            return tensor.value is None or bool(np.isfinite(tensor.value).all())
        case Apply("divide", (left, Num(value))):
            return value != 0 and _is_finite(left)
        case Apply(op, args):
            return op in _FINITE and all(map(_is_finite, args))
    return False
