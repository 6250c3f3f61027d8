"""compute_before_moves: arithmetic on single elements of a moved tensor is done where they were moved from."""

from dataclasses import replace
from itertools import chain
from math import prod

from tvm_neuron.codegen.passes.moves import can_invert, is_one_to_one, moved_load
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, axes_of, rewrite
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor, is_rounded


def compute_before_moves(graph: Graph) -> None:
    """Lets moves follow the arithmetic on what they move, so that whoever reads the result can read through them.

    A scaled head of attention is then a part of the scaled projection, whose kernel takes on the scale.
    """
    for tensor in list(graph.tensors()):
        writers, readers = graph.writers(tensor), graph.readers(tensor)
        if tensor.kind != "temp" or len(writers) != 1 or len(readers) != 1:
            continue
        (move,), (reader,) = writers, readers
        source = moved_load(move)
        if source is None or source.tensor.kind != "temp" or not _moves_all(move, source):
            continue
        if _is_arithmetic_on(reader, tensor) and not is_rounded([source.tensor], tensor, reader.output):
            _swap(graph, move, source, reader)


def _moves_all(move: Block, source: Load) -> bool:
    """Whether every element of the source is moved, once or to several places."""
    moved = prod(axis.extent for axis in set(chain.from_iterable(map(axes_of, source.indices))))
    return moved == source.tensor.elems and can_invert(move) and is_one_to_one(source.indices)


def _is_arithmetic_on(block: Block, tensor: Tensor) -> bool:
    """Whether it computes each element from numbers and one element of the tensor, every one of them once."""
    loads = dict.fromkeys(load for load in block.loads() if not _is_number(load))
    if block.combine or isinstance(block.expr, Load) or len(loads) != 1 or block.output.elems != tensor.elems:
        return False
    (load,) = loads
    if any(True for _ in axes_of(rewrite(block.expr, lambda part: Num(0) if isinstance(part, Load) else part))):
        return False  # where the element lies counts, as in a triangle
    return load.tensor is tensor and can_invert(block) and is_one_to_one(load.indices)


def _is_number(load: Load) -> bool:
    return load.tensor.value is not None and load.tensor.elems == 1


def _swap(graph: Graph, move: Block, source: Load, reader: Block) -> None:
    """The arithmetic into a tensor like the source, then both the move and what the reader did beside computing."""
    made = Tensor(f"{reader.output.name}.unmoved", source.tensor.shape, reader.output.dtype)
    moved = Tensor(f"{reader.output.name}.moved", move.output.shape, reader.output.dtype)
    axes = tuple(Axis(f"u{d}", extent) for d, extent in enumerate(made.shape))
    index = tuple(Index(axis) for axis in axes)

    def leaf(part: Num | Index | Load) -> Expr:
        return Load(source.tensor, index) if isinstance(part, Load) and part == load else part

    (load,) = dict.fromkeys(load for load in reader.loads() if not _is_number(load))
    computed = Block(reader.origin, axes, made, index, rewrite(reader.expr, leaf))
    graph.replace(reader, reader.with_expr(Load(moved, load.indices)))
    graph.replace(move, computed, replace(move, output=moved, expr=Load(made, source.indices)))
