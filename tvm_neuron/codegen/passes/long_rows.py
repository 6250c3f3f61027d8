"""store_in_long_rows: an output that DMA would store in short pieces is transposed first, so that its rows are long."""

from collections.abc import Sequence

from tvm_neuron.allocation.layouts import dram_strides
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.codegen.passes.canonical import canonical
from tvm_neuron.codegen.passes.moves import moved_load
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.isa.dtypes import device_dtype
from tvm_neuron.schedule.expr import Axis, Index, Load
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.kernel import Transposition
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.rule import Context, Rule, apply_rules
from tvm_neuron.schedule.tensor import Tensor


def store_in_long_rows(graph: Graph, partition_of: dict[Tensor, int], rules: Sequence[Rule], context: Context) -> None:
    """Lays what is only to be stored out once more, another dimension on the partitions, where that takes less time.

    A detector's boxes have their columns on the partitions, and the four numbers of each anchor lie together in the
    output: a descriptor for each position, unless rows lie on the partitions and columns beside each other.
    """
    for block in graph.blocks:
        load = moved_load(block)
        if load is None or block.output.kind != "output" or not _is_whole(load):
            continue
        times = {d: _store_ns(block, load, d, context) for d, extent in enumerate(load.tensor.shape) if extent > 1}
        here = partition_of[load.tensor]
        dim = min(times, key=lambda d: times[d], default=here)
        if dim == here or here not in times:
            continue
        copy = Tensor(f"{load.tensor.name}.by{dim}", load.tensor.shape, load.tensor.dtype)
        move = _move(block, load.tensor, copy)
        work_ns = _transposition_ns(move, rules, Context(context.device, {**partition_of, copy: dim}))
        if work_ns is not None and times[dim] + work_ns < times[here]:
            partition_of[copy] = dim
            graph.replace(block, move, block.with_expr(Load(copy, load.indices)))


def _is_whole(load: Load) -> bool:
    """Whether it reads all of a temporary tensor, each dimension along an axis of its own."""
    maps = linear_indices(load.indices) or ()
    extents = tuple(next((axis.extent for axis in part.terms), 1) for part in maps)
    axes = [axis for part in maps for axis in part.terms]
    is_plain = all(part == Linear(0, dict.fromkeys(part.terms, 1)) for part in maps) and len(axes) == len(set(axes))
    return is_plain and extents == load.tensor.shape and load.tensor.kind == "temp"


def _store_ns(block: Block, load: Load, dim: int, context: Context) -> int:
    """How long a DMA takes to store the output, were this dimension of the temporary on the partitions."""
    out, maps, shape = linear_indices(block.index) or (), linear_indices(load.indices) or (), load.tensor.shape
    channel = next(iter(maps[dim].terms))
    free = [axis for axis in block.spatial if axis.extent > 1 and axis is not channel]
    in_rows = dram_strides(shape, [dim, *(d for d in range(len(shape)) if d != dim)])
    there = dram_strides(block.output.shape, range(len(block.output.shape)))
    dtype = device_dtype(block.output.dtype)
    source = Tile("sbuf", dtype, Affine(), channel.extent, Affine(), tuple(_dim(maps, in_rows, a) for a in free))
    target = DramTile(0, dtype, Affine(), tuple(_dim(out, there, axis) for axis in (channel, *free)))
    return DmaCopy(target=target, source=source, ring=0).cost(context.device).busy_cycles


def _dim(maps: Sequence[Linear], strides: Sequence[int], axis: Axis) -> tuple[int, int]:
    return sum(part.terms.get(axis, 0) * stride for part, stride in zip(maps, strides, strict=True)), axis.extent


def _move(block: Block, source: Tensor, target: Tensor) -> Block:
    axes = tuple(Axis(f"c{d}", extent) for d, extent in enumerate(source.shape))
    index = tuple(Index(axis) for axis in axes)
    return canonical(Block(block.origin, axes, target, index, Load(source, index)))


def _transposition_ns(move: Block, rules: Sequence[Rule], context: Context) -> int | None:
    """How long engines take for the move; None if they can't transpose it."""
    kernel = apply_rules(move, rules, context)
    if not isinstance(kernel.root, Transposition):
        return None
    return sum(work_of(kernel, context.device).values()) // 1000
