"""skip_padding: a convolution whose padded map would not fit into SBUF reads the map without its padding.

Dilated windows ask for padding as wide as they reach: a map of 32 x 32 becomes one of 56 x 56 for a dilation of 12, and
of every three rows of the window one lies in the padding for most positions. Each region of the output in which the
same steps of the window meet data is then a contraction over these steps alone; weights come again for each region.
"""

from itertools import pairwise, product
from math import prod

from tvm_neuron.allocation.layouts import bytes_on_chip
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import inverse, moved_load
from tvm_neuron.codegen.passes.padding import padded_move
from tvm_neuron.codegen.passes.pieces import Box, on_box
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, axes_of, replace_axes, rewrite
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.roles import data_factor, is_constant_contraction
from tvm_neuron.schedule.tensor import Tensor

_CHANNELS = 1  # the dimension of a map that lies on the partitions
_DTYPE = "bfloat16"  # of what the PE array multiplies


def skip_padding(graph: Graph, device: Device) -> None:
    """Where only the unpadded map fits beside the weights of two tiles of output channels, and windows are dilated.

    Others reach few rows beyond their own, so that maps run in tiles.
    """
    for tensor in list(graph.tensors()):
        move = padded_move(graph, tensor, fill=0.0) if len(tensor.shape) > _CHANNELS else None
        load = moved_load(move) if move else None
        readers = graph.readers(tensor)
        if move is None or load is None or tensor.kind != "temp" or not all(map(is_constant_contraction, readers)):
            continue
        if not _is_map(load, move):
            continue
        needed = max((_weights_bytes(reader, device) for reader in readers), default=0)
        padded, plain = (bytes_on_chip(_DTYPE, _CHANNELS, found.shape) for found in (tensor, load.tensor))
        beside = needed + (plain if len(graph.readers(load.tensor)) > 1 or load.tensor.kind == "input" else 0)
        if not plain + needed <= device.sbuf_bytes_per_partition < padded + beside:
            continue
        regions = {reader: _regions(reader, tensor, move) for reader in readers}
        if all(regions.values()):
            for reader, boxes in regions.items():
                graph.replace(reader, *(_unpadded(reader, box, move, load) for box in boxes or ()))
            for writer in graph.writers(tensor):
                graph.replace(writer)


def _is_map(load: Load, move: Block) -> bool:
    """Whether what is padded has the dimensions of the padded map, rather than being reshaped or turned into it."""
    return [list(axes_of(index)) for index in load.indices] == [list(axes_of(index)) for index in move.index]


def _weights_bytes(block: Block, device: Device) -> int:
    """Of each partition: those of as many output channels as the array has columns, and of the next ones."""
    data = data_factor(block)
    channels = set(axes_of(data.indices[_CHANNELS])) if data else set()
    deep = prod(axis.extent for axis in block.reduction if axis in channels)
    steps = prod(axis.extent for axis in block.reduction if axis not in channels)
    return 2 * -(-deep // device.partitions) * steps * device.pe_columns * size_bytes(_DTYPE)


def _regions(block: Block, padded: Tensor, move: Block) -> list[Box] | None:
    """Boxes of the axes that cover the output, in each of which all steps of the window meet data; None if none do."""
    data, into = data_factor(block), linear_indices(move.index)
    maps = linear_indices(data.indices) if data else None
    if data is None or maps is None or into is None:
        return None
    whole: Box = {axis: (0, axis.extent) for axis in block.axes}
    cuts: list[list[Box]] = []
    for d, (part, target) in enumerate(zip(maps, into, strict=True)):
        low, high = target.span
        if (low, high) != (0, padded.shape[d] - 1):
            found = _cuts(part, low, high)
            if found is None:
                return None
            cuts.append(found)
    named = [axis for found in cuts for axis in found[0]]
    if len(named) != len(set(named)) or max(m.terms.get(axis, 0) for m in maps for axis in block.reduction) == 1:
        return None
    return [{**whole, **{axis: span for part in parts for axis, span in part.items()}} for parts in product(*cuts)]


def _cuts(part: Linear, low: int, high: int) -> list[Box] | None:
    """Along a dimension with data at [low, high]: parts of the output's positions, and the window's steps for each."""
    out = [axis for axis in part.terms if not axis.is_reduction]
    steps = [axis for axis in part.terms if axis.is_reduction]
    if len(out) != 1 or len(steps) != 1:
        return None
    (at,), (step,) = out, steps

    def met(position: int) -> tuple[int, int]:
        places = [part.const + position * part.terms[at] + n * part.terms[step] for n in range(step.extent)]
        inside = [n for n, place in enumerate(places) if low <= place <= high]
        return (inside[0], inside[-1] + 1) if inside else (0, 0)

    every = [met(position) for position in range(at.extent)]
    if (0, 0) in every:
        return None
    starts = [0, *(n for n in range(1, at.extent) if every[n] != every[n - 1]), at.extent]
    return [{at: span, step: every[span[0]]} for span in pairwise(starts)]


def _unpadded(block: Block, box: Box, move: Block, source: Load) -> Block:
    piece = on_box(block, box, block.expr)

    def leaf(found: Num | Index | Load) -> Expr:
        if not isinstance(found, Load) or found.tensor is not move.output:
            return found
        by: dict[Axis, Expr] = inverse(move, found.indices)
        return Load(source.tensor, tuple(replace_axes(index, by) for index in source.indices))

    return canonical(piece.with_expr(rewrite(piece.expr, leaf)))
