"""joined: whether one instruction is to cover several chunks of channels, by the time that engines are kept.

Where it is one value for each partition, an operand is taken on the way by an instruction for each chunk; one for all
chunks reads it as a tile like others, which may take an instruction more.
"""

from tvm_neuron.allocation.storage import OnChip, Span
from tvm_neuron.codegen.emit.chunks import has_chunks, in_chunks
from tvm_neuron.codegen.emit.emitter import Emitter
from tvm_neuron.codegen.emit.squeeze import Squeeze
from tvm_neuron.codegen.emit.tile_end import TileEnd
from tvm_neuron.isa import Affine, Tile
from tvm_neuron.isa.tile import MAX_FREE_DIMS
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import Kernel, Reduction
from tvm_neuron.schedule.tiling import Segment, contiguous
from tvm_neuron.sim.clock import clock_hz, duration_ps

_CLEAR_GAIN = 1.5
"""Of instructions for each chunk the first begin sooner, and so does what follows each: waiting has to be worth it."""


def joined(emitter: Emitter, kernel: Kernel, run: Segment) -> tuple[Kernel, Axis, Axis] | None:
    """The kernel over a run of channels, all of its chunks together; its axes within and over the chunks.

    None where no pattern covers several chunks, or nothing is to be joined.
    """
    if run[2] == 1 or kernel in emitter.kept:
        return None
    if not has_chunks(kernel, kernel.channel, emitter.plan.partition_of):
        return None
    read = [kernel.root.load.tensor] if isinstance(kernel.root, Reduction) else []
    places = [emitter.storage(t) for t in (kernel.out, *read, *(load.tensor for load in kernel.operand_loads()))]
    if not all(isinstance(place, OnChip) and place.joins_chunks for place in places):
        return None
    return in_chunks(kernel, kernel.channel, run)


def keeps_engines_less(
    emitter: Emitter, kernel: Kernel, several: Kernel, chunk: Axis, tile: dict[Axis, Span], start: int,
    later_ps: int = 0,
) -> bool:  # fmt: skip
    """Whether a tile of `several` keeps engines for less time than as many tiles of one chunk from channel `start`.

    It begins later than the first of these by `later_ps`.
    """
    alone = {axis: tile[axis] for axis in kernel.free if axis is not kernel.channel}
    alone[kernel.channel] = Span(start, tile[several.channel].size)
    together = busy_ps(emitter, several, tile)
    apart = tile[chunk].size * (busy_ps(emitter, kernel, alone) or 0)
    least = _CLEAR_GAIN if emitter.chunks_apart else 1
    return together is not None and least * together + later_ps < apart


def busy_ps(emitter: Emitter, kernel: Kernel, spans: dict[Axis, Span]) -> int | None:
    """For how long a tile's arithmetic keeps engines; None where a pattern has no room for its dimensions."""
    end = TileEnd(emitter, kernel, spans)
    counts = [spans[axis].size for axis in kernel.free]
    rows = spans[kernel.channel].size
    root = None if kernel.root is None else Tile("psum", "float32", Affine(), rows, Affine(), contiguous(counts))
    shape_of = Squeeze([*end.patterns, *([] if root is None else [root])])
    if len(shape_of.groups) > MAX_FREE_DIMS:
        return None
    found = end.instructions(shape_of, None if root is None else shape_of(root))
    device = emitter.device
    return sum(duration_ps(i.cost(device).busy_cycles, clock_hz(device, i.engine)) for i in found)


