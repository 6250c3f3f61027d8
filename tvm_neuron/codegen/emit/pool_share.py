"""pool_share: a part of a depthwise convolution on POOL, while the PE array does the rest.

The array takes a column for each position and step of the window, and multiplies 128 numbers by one that is not zero.
POOL multiplies by a number for each partition and adds to PSUM in one instruction. It is slower by the ratio of the
clocks, but has nothing else to do where ACT alone brings results out of PSUM.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.regions import data_maps
from tvm_neuron.allocation.storage import OnChip, Span
from tvm_neuron.codegen.emit.corners import corners, is_made
from tvm_neuron.codegen.emit.emitter import WEIGHTS_QUEUE, Emitter
from tvm_neuron.codegen.emit.squeeze import Squeeze
from tvm_neuron.codegen.emit.tile_end import TileEnd
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, ScalarTensorTensor, TensorScalar, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.limits import partition_start_step
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.tiling import PARTITIONS, Region, Segment, contiguous, segments, tile_sizes
from tvm_neuron.sim.clock import clock_hz, duration_ps

_MOST = 4  # parts at a time: each keeps a bank of PSUM


@dataclass(frozen=True)
class Diagonal:
    """[channels, steps] weights of the run of output channels `run`, which read those from channel `first` on."""

    run: Segment
    first: int
    weights: NDArray[Any]


@dataclass(frozen=True)
class Share:
    """What POOL takes, diagonals over regions; and what is left to the array, output channels over regions."""

    taken: tuple[tuple[Diagonal, Region], ...]
    left: tuple[tuple[list[Segment], Region], ...]


def pool_share(
    emitter: Emitter, kernel: Kernel, channels: Sequence[Segment], data_first: int, is_whole: bool
) -> Share | None:
    """POOL's share of a depthwise convolution that lies in SBUF as a whole; None where it would not help.

    `is_whole`: the array's tiles are whole, not corners.
    """
    root, device = kernel.root, emitter.device
    assert isinstance(root, Contraction)
    strips = emitter.plan.strips[kernel]
    if not root.has_zeros or root.side or is_made(root, device) or len(strips) > 1 or not kernel.free:
        return None
    if emitter.is_staged(kernel) or emitter.times_used(root.weights) > 1 or emitter.keeps.get(kernel, 0):
        return None
    if work_of(kernel, device)["pool"]:
        return None
    single = [(start + i * PARTITIONS, size, 1) for start, size, count in channels for i in range(count)]
    diagonals = [part for run in single if (part := diagonal(root, run, data_first))]
    if len(diagonals) < len(single):
        return None
    region = strips[0]
    rows = kernel.free[0]
    most = tile_sizes(kernel.free, region, device.moving_max_elems)[rows]
    inner = prod(axis.extent for axis in kernel.free[1:])
    if most * inner > device.moving_max_elems:
        return None
    cuts = [_chunks(*region[rows], size) for size in (most, -(-most // 2))]
    cuts = [chunks for chunks in cuts if chunks is cuts[0] or _is_long(chunks[0][1] * inner, device)]
    found = None if is_whole else corners(kernel, single[0], 0, device)
    columns, matmuls = (single[0][1] // len(found), len(found)) if found else (single[0][1], 1)
    # POOL adds to all its parts in turns, and so begins when the last one's data are there.
    begin = (len(single) - 1) * _chunk_ps(emitter, root)
    steps = prod(axis.extent for axis in root.steps)
    counts = [
        _count(steps, columns, matmuls, chunks[0][1] * inner, len(chunks) * len(single), begin, device)
        for chunks in cuts
    ]
    (_, taken), chunks = min(zip(counts, cuts, strict=True), key=lambda pair: pair[0][0])
    if not taken:
        return None
    low, _ = region[rows]
    whole, rest = divmod(len(chunks) * len(single) - taken, len(chunks))
    parts = [(part, {**region, rows: (start, start + n)}) for part in diagonals for start, n in chunks][-taken:]
    left = [(single[:whole], region)] if whole else []
    left += [(single[whole : whole + 1], {**region, rows: (low, chunks[rest][0])})] if rest else []
    return Share(tuple(parts), tuple(left))


def diagonal(root: Contraction, run: Segment, data_first: int) -> Diagonal | None:
    """The weights of a run of output channels, if each of these reads one channel, all on partitions side by side."""
    start, size, _ = run
    rows = root.rows_met(start, start + size)
    if len(rows) != size or rows[-1] - rows[0] != size - 1:
        return None
    first = int(rows[0])
    at = (data_first + first) % PARTITIONS
    block = root.weights[first : first + size, ..., start : start + size]
    own = np.moveaxis(np.diagonal(block, axis1=0, axis2=block.ndim - 1), -1, 0).reshape(size, -1)
    if np.count_nonzero(own) != np.count_nonzero(block) or at + size > PARTITIONS or at % partition_start_step(size):
        return None
    return Diagonal(run, first, own)


def _chunks(low: int, high: int, size: int) -> list[tuple[int, int]]:
    """Where each part of about `size` rows starts, and how many it has."""
    return [(start + i * n, n) for start, n, count in segments(low, high, size) for i in range(count)]


def _is_long(elems: int, device: Device) -> bool:
    """Whether neither engine would do more of them in the same time."""
    return elems >= max(device.elementwise_min_cycles, device.matmul_min_cycles)


def _chunk_ps(emitter: Emitter, root: Contraction) -> int:
    """How long ACT takes to bring 128 channels of the data out of PSUM."""
    elems = root.data.elems // root.data.shape[emitter.plan.partition_of[root.data]]
    return duration_ps(max(emitter.device.elementwise_min_cycles, elems), clock_hz(emitter.device, "act"))


def _count(
    steps: int, columns: int, matmuls: int, elems: int, parts: int, begin: int, device: Device
) -> tuple[int, int]:
    """The time until both are done, and how many of so many equal parts POOL takes for that, which begins later.

    The array takes `matmuls` of so many columns for each step of a part.
    """
    array = matmuls * duration_ps(max(min(device.matmul_min_cycles, columns), elems), clock_hz(device, "pe"))
    cycles = max(device.elementwise_min_cycles, elems)

    def time(taken: int) -> int:
        latency = device.instruction_latency_cycles if taken == 1 else 0  # then each sum waits for the one before
        pool = duration_ps(cycles + latency, clock_hz(device, "pool"))
        return max(steps * array * (parts - taken), begin + steps * pool * taken if taken else 0)

    return min((time(taken), taken) for taken in range(min(_MOST, parts - 1) + 1))


def emit_share(emitter: Emitter, kernel: Kernel, share: Share) -> None:
    """All parts side by side, so that none waits for its own last sum; then the way out of each."""
    root, builder = kernel.root, emitter.builder
    assert isinstance(root, Contraction)
    device = emitter.device
    weights = _load(emitter, kernel, list(dict.fromkeys(part.run for part, _ in share.taken)), share)
    tiles = []
    for number, (part, region) in enumerate(share.taken):
        start, size, _ = part.run
        spans = {kernel.channel: Span(start, size)}
        spans |= {axis: Span(low, high - low) for axis, (low, high) in region.items()}
        end = TileEnd(emitter, kernel, spans)
        bank = (device.psum_banks - 1 - number) * device.psum_bank_bytes
        psum = Tile("psum", "float32", Affine(), size, Affine(bank), contiguous([spans[a].size for a in kernel.free]))
        shape_of = Squeeze([_moving(emitter, kernel, part, spans, (0,) * len(root.steps)), *end.patterns, psum])
        tiles.append((part, spans, end, shape_of, shape_of(psum)))
    for number, step in enumerate(product(*(range(axis.extent) for axis in root.steps))):
        for part, spans, _, shape_of, psum in tiles:
            moving = shape_of(_moving(emitter, kernel, part, spans, step))
            at = weights[part.run]
            factor = replace(at, offset=at.offset.plus(number * size_bytes(at.dtype)), partition=moving.partition)
            if number == 0:
                builder.emit(
                    TensorScalar(
                        result=psum, source=moving, scalar0=factor, scalar1=0.0, op0="multiply", op1="bypass", reverse=0
                    )
                )  # fmt: skip
            else:
                builder.emit(
                    ScalarTensorTensor(
                        result=psum, left=moving, right=psum, scalar0=factor, op0="multiply", op1="add"
                    )
                )  # fmt: skip
    for _, _, end, shape_of, psum in tiles:
        end.finish(shape_of, psum, ())


def _moving(
    emitter: Emitter, kernel: Kernel, part: Diagonal, spans: dict[Any, Span], step: Sequence[int]
) -> Tile:
    root = kernel.root
    assert isinstance(root, Contraction)
    data = emitter.storage(root.data)
    assert isinstance(data, OnChip)
    depth, maps = data_maps(root, emitter.plan.partition_of[root.data])
    inside = {axis: spans[axis] for axis in kernel.free} | {depth: Span(part.first, part.run[1])}
    inside |= {axis: Span(at, 1) for axis, at in zip(root.steps, step, strict=True)}
    return data.tile(maps, depth, kernel.free, inside)


def _load(emitter: Emitter, kernel: Kernel, runs: Sequence[Segment], share: Share) -> dict[Segment, Tile]:
    """[P, 1] of the first step of each run, those of all others behind it; one transfer brings all."""
    root, builder = kernel.root, emitter.builder
    assert isinstance(root, Contraction)
    first = emitter.plan.partition_of[root.data]
    each = {part.run: part for part, _ in share.taken}
    at_of = {run: (root.maps[first].const + each[run].first) % PARTITIONS for run in runs}
    steps, item = next(iter(each.values())).weights.shape[1], size_bytes(root.dtype)
    rows = max(at_of[run] + run[1] for run in runs)
    packed = np.zeros((rows, len(runs) * steps), np.float32)
    for number, run in enumerate(runs):
        packed[at_of[run] : at_of[run] + run[1], number * steps : (number + 1) * steps] = each[run].weights
    emitter.begin_weights()
    place = builder.weights.take(packed.shape[1] * item)
    index = builder.add_weight(f"{kernel.origins[0].name}.weights", packed, root.dtype, root.repeats)
    target = Tile("sbuf", root.dtype, Affine(), rows, Affine(place), ((1, packed.shape[1]),))
    source = DramTile(index, root.dtype, Affine(), ((packed.shape[1], rows), (1, packed.shape[1])))
    builder.emit(DmaCopy(target=target, source=source, ring=WEIGHTS_QUEUE))
    return {
        run: replace(target, partitions=run[1], offset=Affine(place + number * steps * item), dims=((1, 1),))
        for number, run in enumerate(runs)
    }
