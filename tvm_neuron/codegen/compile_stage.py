"""compile_stage: the list of steps from the kernels of one core to its NEFF."""

from collections.abc import Callable
from types import NoneType

from tvm_neuron.allocation.layouts import dram_strides
from tvm_neuron.allocation.storage import InDram
from tvm_neuron.codegen.emit.builder import Builder, Ring
from tvm_neuron.codegen.emit.contraction import emit_contraction
from tvm_neuron.codegen.emit.emitter import LOAD_QUEUE, Emitter
from tvm_neuron.codegen.emit.gather import emit_gather
from tvm_neuron.codegen.emit.movement import emit_movement
from tvm_neuron.codegen.emit.positions import load_positions
from tvm_neuron.codegen.emit.product import emit_product, emit_transposition
from tvm_neuron.codegen.emit.vector import emit_vector
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.residents import Room, check_all_stay, place_stage
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.sync import synchronise
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.neff import Neff
from tvm_neuron.program import DramTensor, Node, Program
from tvm_neuron.program.race import check_races
from tvm_neuron.program.residents import check_residents
from tvm_neuron.program.verify import verify
from tvm_neuron.runtime import VERSION
from tvm_neuron.schedule.kernel import Contraction, Gather, Kernel, Product, Reduction, Transposition
from tvm_neuron.schedule.tensor import Tensor


def compile_stage(stage: Stage, device: Device, options: BuildOptions, keep_weights: bool) -> Neff:
    """The NEFF of one core.

    Raises:
        CompileError: an operator needs more on-chip memory than there is.
        ProgramError: the compiler made a program that breaks a rule or races with itself (a defect of ours).
    """
    options.on_stage(f"{stage.name}: place tensors")
    room = place_stage(stage, device, keep_weights)
    if options.static_weights:
        check_all_stay(room, stage, device, options.pipeline_cores)
    options.on_stage(f"{stage.name}: emit")
    builder, program = _emit(stage, room, device, keep_weights)
    options.on_stage(f"{stage.name}: synchronise")
    program = synchronise(program, device)
    prologue = synchronise(program.with_body(tuple(builder.prologue)), device)
    options.on_stage(f"{stage.name}: check")
    for part in (prologue, program):
        verify(part, device)
        check_races(part, device)
    check_residents(prologue, program)
    return Neff(
        name=stage.name,
        program=program,
        prologue=prologue.body,
        device=device,
        weights=builder.arrays,
        inputs=tuple(stage.inputs.values()),
        outputs=tuple(stage.outputs.values()),
        options=options.to_dict(),
        compiler_version=VERSION,
        memory=_memory_report(program, room, builder.weights, device),
    )


_EMIT: dict[type, Callable[[Emitter, Kernel], None]] = {
    Contraction: emit_contraction,
    Product: emit_product,
    Transposition: emit_transposition,
    Reduction: emit_vector,
    NoneType: emit_vector,
}


def _emit(stage: Stage, room: Room, device: Device, keep_weights: bool) -> tuple[Builder, Program]:
    zones = room.zones
    weights_at = zones.tensors_at + room.plan.extent_bytes
    builder = Builder(
        device, 0, Ring(zones.resident_at, zones.resident_bytes), Ring(zones.scratch_at, zones.scratch_bytes),
        Ring(zones.reduced_at, zones.reduced_bytes), Ring(zones.positions_at, zones.positions_bytes),
        Ring(weights_at, device.sbuf_bytes_per_partition - weights_at),
    )  # fmt: skip
    emitter = Emitter(builder, room.plan, device, _dram_tensors(stage, room, builder), room.keeps)
    for kernel in stage.kernels:
        with builder.working_for(kernel.origins[0]):
            if kernel.by_dma:
                (emit_gather if isinstance(kernel.root, Gather) else emit_movement)(emitter, kernel)
                continue
            load_positions(emitter, kernel)
            _EMIT[type(kernel.root)](emitter, kernel)
    vectors = _load_vectors(builder)
    builder.prologue += vectors if keep_weights else []
    body = (*(() if keep_weights else vectors), *builder.body)
    return builder, Program(tuple(builder.tensors), tuple(builder.origins), body)


def _dram_tensors(stage: Stage, room: Room, builder: Builder) -> dict[Tensor, InDram]:
    """What crosses the border, and what is spilled."""
    every = dict.fromkeys(
        [*stage.inputs, *stage.outputs, *(t for k in stage.kernels for t in (k.out, *k.sources()))]
    )
    found: dict[Tensor, InDram] = {}
    for tensor in every:
        info = stage.inputs.get(tensor) or stage.outputs.get(tensor)
        if not info and tensor not in room.plan.in_dram:
            continue
        kind = "input" if tensor in stage.inputs else "output" if info else "scratch"
        order, dtype = stage.dram_order(tensor), stage.dtype(tensor)
        shape = tuple(tensor.shape[d] for d in order)
        index = builder.add_tensor(DramTensor(info.name if info else tensor.name, kind, shape, dtype))
        found[tensor] = InDram(index, dtype, dram_strides(tensor.shape, order))
    return found


def _load_vectors(builder: Builder) -> list[Node]:
    table = builder.vector_table()
    rows, columns = table.shape
    if not columns:
        return []
    index = builder.add_weight("vectors", table, "float32")
    target = Tile("sbuf", "float32", Affine(), rows, Affine(), ((1, columns),))
    source = DramTile(index, "float32", Affine(), ((columns, rows), (1, columns)))
    return [DmaCopy(target=target, source=source, ring=LOAD_QUEUE)]


def _memory_report(program: Program, room: Room, weights: Ring, device: Device) -> dict[str, int]:
    def total(kind: str) -> int:
        return sum(tensor.size_bytes for tensor in program.tensors if tensor.kind == kind)

    used = room.zones.tensors_at + room.plan.extent_bytes + weights.used
    return {
        "weights": total("weight"),
        "resident": room.zones.resident_bytes * device.partitions,
        "activations": room.plan.peak_bytes_per_partition * device.partitions,
        "spill": total("scratch"),
        "sbuf_peak": used * device.partitions,
    }
