"""subtract_as_add: what is subtracted from many elements is negated once, so that ACT adds it on the way in."""

from dataclasses import replace

from tvm_neuron.codegen.integers import is_integer
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, loads, replace_axes
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor

_SMALLER = 16  # times than what reads it: negating must cost next to nothing


def subtract_as_add(graph: Graph) -> None:
    """Means and maxima that are only ever subtracted, from far larger tensors, are kept with the other sign."""
    for block in graph.blocks:
        tensor, readers = block.output, graph.readers(block.output)
        if tensor.kind != "temp" or len(graph.writers(tensor)) != 1 or is_integer(tensor.dtype):
            continue  # whole numbers need not have an opposite in their dtype
        if readers and all(_only_subtracts(reader, tensor) for reader in readers):
            opposite = Tensor(f"{tensor.name}.negative", tensor.shape, tensor.dtype)
            last = graph.writers(tensor)[0]
            graph.replace(last, last, _negation(last, tensor, opposite))
            for reader in readers:
                graph.replace(reader, reader.with_expr(_added(reader.expr, tensor, opposite)))


def _only_subtracts(reader: Block, tensor: Tensor) -> bool:
    """Whether every load of the tensor in a block without a reduction is the right side of a subtraction."""
    found = sum(load.tensor is tensor for load in loads(reader.expr))
    is_small = reader.output.elems >= _SMALLER * tensor.elems
    return not reader.combine and is_small and found == _subtractions(reader.expr, tensor)


def _subtractions(expr: Expr, tensor: Tensor) -> int:
    if not isinstance(expr, Apply):
        return 0
    here = expr.op == "subtract" and isinstance(expr.args[1], Load) and expr.args[1].tensor is tensor
    return int(here) + sum(_subtractions(arg, tensor) for arg in expr.args)


def _negation(block: Block, tensor: Tensor, opposite: Tensor) -> Block:
    axes = tuple(replace(axis) for axis in block.spatial)
    by: dict[Axis, Expr] = {old: Index(new) for old, new in zip(block.spatial, axes, strict=True)}
    index = tuple(replace_axes(part, by) for part in block.index)
    return Block(block.origin, axes, opposite, index, Apply("multiply", (Load(tensor, index), Num(-1.0))))


def _added(expr: Expr, tensor: Tensor, opposite: Tensor) -> Expr:
    if not isinstance(expr, Apply):
        return expr
    left, *rest = (_added(arg, tensor, opposite) for arg in expr.args)
    if expr.op == "subtract" and isinstance(rest[0], Load) and rest[0].tensor is tensor:
        return Apply("add", (left, Load(opposite, rest[0].indices)))
    return Apply(expr.op, (left, *rest))
