"""emit_stage: the kernels of one core as instructions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.allocation.layouts import dram_strides
from tvm_neuron.allocation.storage import InDram
from tvm_neuron.codegen.emit.builder import Builder, Ring
from tvm_neuron.codegen.emit.contraction import emit_contraction
from tvm_neuron.codegen.emit.emitter import LOAD_QUEUE, TABLE_QUEUE, WEIGHTS_QUEUE, Emitter
from tvm_neuron.codegen.emit.gather import emit_gather
from tvm_neuron.codegen.emit.images import transfer_image
from tvm_neuron.codegen.emit.movement import emit_movement
from tvm_neuron.codegen.emit.positions import load_positions
from tvm_neuron.codegen.emit.product import emit_product, emit_transposition
from tvm_neuron.codegen.emit.stay_in_psum import STAY_IN_PSUM, stay_in_psum
from tvm_neuron.codegen.emit.vector import emit_vector
from tvm_neuron.codegen.emit.vectors import Vectors
from tvm_neuron.codegen.emit.weights_memory import WeightsMemory
from tvm_neuron.codegen.residents import Room
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.zone_lives import zone_lives
from tvm_neuron.codegen.zones import vector_columns
from tvm_neuron.errors import InternalError
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.program import DramTensor, Node, Program
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import Contraction, Gather, Kernel, Product, Reduction, Scan, Statistics, Transposition
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.sums import sums_on_the_way
from tvm_neuron.schedule.tensor import Tensor

_EMIT: dict[type, Callable[[Emitter, Kernel], None]] = {
    Contraction: emit_contraction,
    Product: emit_product,
    Transposition: emit_transposition,
    Reduction: emit_vector,
    Statistics: emit_vector,
    Scan: emit_vector,
    NoneType: emit_vector,
}


@dataclass(frozen=True)
class Emitted:
    """What was emitted, without waits: all that a run does, what runs once before, and the weights of both."""

    builder: Builder
    program: Program
    prologue: tuple[Node, ...]
    arrays: Mapping[str, NDArray[Any]]
    nodes: tuple[tuple[Node, ...], ...]  # by kernel, but for what runs once
    joined_ps: int  # for which instructions that cover several chunks of partitions keep their engines


def emit_stage(stage: Stage, room: Room, device: Device, keep_weights: bool) -> Emitted:
    """The stage's instructions; with `keep_weights`, what stays in SBUF is loaded by the prologue."""
    zones = room.zones
    end = device.sbuf_bytes_per_partition
    reads_input = (n for n, k in enumerate(stage.kernels) if not stage.inputs.keys().isdisjoint(k.sources()))
    lives = zone_lives(zones, stage.kernels, device)
    builder = Builder(
        device, Vectors(0, zones.vectors_columns, zones.vectors_in_turns, device.partitions),
        Ring(zones.resident_at, zones.resident_bytes), Ring(zones.scratch_at, zones.scratch_bytes),
        Ring(zones.reduced_at, zones.reduced_bytes), Ring(zones.positions_at, zones.positions_bytes),
        Ring(zones.masks_at, zones.masks_bytes), Ring(zones.diagonals_at, zones.diagonals_bytes),
        Ring(zones.scaled_at, zones.scaled_bytes), WeightsMemory(room.plan, end, max(reads_input, default=0), lives),
        Ring(zones.factors_at, zones.factors_bytes),
    )  # fmt: skip
    dram, images = _dram_tensors(stage, room, builder)
    sums = sums_on_the_way(stage.kernels)
    emitter = Emitter(builder, room.plan, device, dram, room.keeps, images=images, uses=_uses(stage), sums=sums)
    emitter.chunks_apart = stage.chunks_apart
    if STAY_IN_PSUM.is_taken:
        emitter.in_psum = stay_in_psum(stage.kernels, room.plan, stage.outputs, device)
        builder.leave_banks(emitter.in_psum.values())
    ends = [0]
    arrivals, departures = _transfers(stage, room)
    for number, kernel in enumerate(stage.kernels):
        check_inside(kernel)
        builder.weights.begin(number)
        with builder.working_for(kernel.origins[0]):
            for tensor in arrivals.get(number, ()):
                _transfer(emitter, tensor, is_load=True)
            if kernel.by_dma:
                (emit_gather if isinstance(kernel.root, Gather) else emit_movement)(emitter, kernel)
            else:
                table = builder.vectors.begin(vector_columns([kernel], stage.partition_of, device))
                begin = len(builder.body)
                load_positions(emitter, kernel)
                _EMIT[type(kernel.root)](emitter, kernel)
                if table is not None:
                    _load_in_turn(builder, table, begin)
            for tensor in departures.get(number, ()):
                _transfer(emitter, tensor, is_load=False)
        ends.append(len(builder.body))
    vectors: tuple[Node, ...] = ()
    if builder.vectors.used and not zones.vectors_in_turns:
        vectors = (_load_vectors(builder, builder.vectors.tables[0][:, : builder.vectors.used].copy(), 0, LOAD_QUEUE),)
    once, always = (vectors, ()) if keep_weights else ((), vectors)
    program = Program(tuple(builder.tensors), tuple(builder.origins), (*always, *builder.body))
    nodes = tuple(tuple(builder.body[start:end]) for start, end in pairwise(ends))
    return Emitted(builder, program, (*once, *builder.prologue), builder.arrays, nodes, emitter.joined_ps)


def check_inside(kernel: Kernel) -> None:
    """A kernel that writes past its tensor would write over what lies there: it is a defect, and never runs.

    So is one that reads past a tensor: what lies there is another's.
    """
    for what, tensor, maps in _accesses(kernel):
        spans = [part.span for part in maps]
        if any(low < 0 or high >= extent for (low, high), extent in zip(spans, tensor.shape, strict=True)):
            raise InternalError(f"a kernel of '{kernel.origins[0].name}' {what} {spans} of {tensor}")


def _accesses(kernel: Kernel) -> Iterator[tuple[str, Tensor, Sequence[Linear]]]:
    yield "writes", kernel.out, kernel.out_maps
    root = kernel.root
    loads = [*kernel.operand_loads(), *(root.loads if isinstance(root, Reduction) else ())]
    for load in loads:
        maps = linear_indices(load.indices)
        if maps is not None:
            yield "reads", load.tensor, maps
    if isinstance(root, Contraction):
        yield "reads", root.data, root.maps
    elif isinstance(root, Product):
        for operand in (root.stationary, root.moving):
            yield "reads", operand.tensor, operand.maps
    elif isinstance(root, Transposition):
        yield "reads", root.source.tensor, root.source.maps


def _uses(stage: Stage) -> Mapping[int, list[int]]:
    """The steps of the kernels that multiply by each of the weights, by identity."""
    found: dict[int, list[int]] = {}
    for step, kernel in enumerate(stage.kernels):
        if isinstance(kernel.root, Contraction):
            found.setdefault(id(kernel.root.weights), []).append(step)
        elif isinstance(kernel.root, Product) and kernel.root.moving.tensor.value is not None:
            found.setdefault(id(kernel.root.moving.tensor.value), []).append(step)
    return found


def _transfer(emitter: Emitter, tensor: Tensor, is_load: bool) -> None:
    if tensor in emitter.images:
        transfer_image(emitter, tensor, is_load)
    else:
        emitter.transfer(tensor, is_load)


def _transfers(stage: Stage, room: Room) -> tuple[dict[int, list[Tensor]], dict[int, list[Tensor]]]:
    """Tensors of other cores by the kernel that reads them first, those for other cores by the one that writes last."""
    arrivals: dict[int, list[Tensor]] = {}
    departures: dict[int, list[Tensor]] = {}
    resident = room.plan.offsets
    for tensor in stage.inputs:
        if tensor in resident or tensor in stage.images:
            first = next(number for number, kernel in enumerate(stage.kernels) if tensor in kernel.sources())
            arrivals.setdefault(first, []).append(tensor)
    for tensor in stage.outputs:
        if tensor in resident or tensor in stage.images:
            last = max(number for number, kernel in enumerate(stage.kernels) if kernel.out is tensor)
            departures.setdefault(last, []).append(tensor)
    return arrivals, departures


def _dram_tensors(stage: Stage, room: Room, builder: Builder) -> tuple[dict[Tensor, InDram], dict[Tensor, int]]:
    """What crosses the border, and what is spilled; and the tensors in the program's table that hold images."""
    every = dict.fromkeys([*stage.inputs, *stage.outputs, *(t for k in stage.kernels for t in (k.out, *k.sources()))])
    found: dict[Tensor, InDram] = {}
    images: dict[Tensor, int] = {}
    for tensor in every:
        info = stage.inputs.get(tensor) or stage.outputs.get(tensor)
        if not info and tensor not in room.plan.in_dram:
            continue
        kind = "input" if tensor in stage.inputs else "output" if info else "scratch"
        order, dtype = stage.dram_order(tensor), stage.dtype(tensor)
        if info and tensor in stage.images:
            images[tensor] = builder.add_tensor(DramTensor(info.name, kind, info.shape, dtype))
            if tensor not in room.plan.in_dram:
                continue
            info, kind = None, "scratch"
        shape = tuple(tensor.shape[d] for d in order)
        index = builder.add_tensor(DramTensor(info.name if info else tensor.name, kind, shape, dtype))
        found[tensor] = InDram(index, dtype, dram_strides(tensor.shape, order))
    return found, images


def _load_in_turn(builder: Builder, table: NDArray[np.float32], begin: int) -> None:
    """The last table, behind the transfers from which the kernel that begins at node `begin` goes out.

    The first two wait for nothing, and come among the weights: first of all, they would hold up what the array needs.
    """
    body, vectors = builder.body, builder.vectors
    queue = (WEIGHTS_QUEUE, TABLE_QUEUE, LOAD_QUEUE)[min(2, len(vectors.tables) - 1)]
    at = next(number for number in range(begin, len(body)) if not isinstance(body[number], DmaCopy))
    builder.emit(_load_vectors(builder, table, vectors.table_at, queue))
    body.insert(at, body.pop())


def _load_vectors(builder: Builder, table: NDArray[np.float32], at: int, queue: int) -> DmaCopy:
    """Columns to byte `at`; kernels still write into the table until all are emitted."""
    rows, columns = table.shape
    index = builder.add_tensor(DramTensor("vectors", "weight", table.shape, "float32"))
    builder.arrays[builder.tensors[index].name] = table
    target = Tile("sbuf", "float32", Affine(), rows, Affine(at), ((1, columns),))
    source = DramTile(index, "float32", Affine(), ((columns, rows), (1, columns)))
    return DmaCopy(target=target, source=source, ring=queue)
