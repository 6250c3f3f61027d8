"""compile_function: the list of steps from one Relax function to its NEFF."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import NoneType

from tvm import relax

from tvm_neuron.allocation.layouts import aligned, dram_strides
from tvm_neuron.allocation.memory_plan import MemoryPlan, plan_memory
from tvm_neuron.allocation.storage import InDram
from tvm_neuron.codegen.capability import verdict
from tvm_neuron.codegen.emit.arithmetic import count_temporaries
from tvm_neuron.codegen.emit.builder import Builder, Ring
from tvm_neuron.codegen.emit.contraction import emit_contraction
from tvm_neuron.codegen.emit.emitter import LOAD_QUEUE, Emitter, partition_firsts
from tvm_neuron.codegen.emit.movement import emit_movement
from tvm_neuron.codegen.emit.positions import load_positions, zone_bytes
from tvm_neuron.codegen.emit.product import emit_product, emit_transposition
from tvm_neuron.codegen.emit.vector import MAX_TILE_ELEMS, emit_vector, scratch_bytes
from tvm_neuron.codegen.kernels.saturate import saturate
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.legalise import legalise
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.codegen.simplify import make_kernels, weights_bytes
from tvm_neuron.codegen.sync import synchronise
from tvm_neuron.errors import CompileError
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Tile
from tvm_neuron.isa.dtypes import device_dtype
from tvm_neuron.neff import Neff, TensorInfo, write
from tvm_neuron.partition import Verdict
from tvm_neuron.partition.constraints import IsConstant
from tvm_neuron.program import DramTensor, Node, Program
from tvm_neuron.program.race import check_races
from tvm_neuron.program.verify import verify
from tvm_neuron.runtime import VERSION
from tvm_neuron.schedule.expr import loads
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.kernel import ACCUMULATOR, Contraction, Kernel, Product, Reduction, Transposition
from tvm_neuron.schedule.rule import Rule, load_rules
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import runs


@cache
def _rules(fast_relayout: bool) -> tuple[Rule, ...]:
    """All rules, but for transpositions by the PE array if data may only be moved byte by byte."""
    return tuple(rule for rule in load_rules() if fast_relayout or rule.name != "transposition")


def compile_function(func: relax.Function, name: str, device: Device, options: BuildOptions) -> bytes:
    """The NEFF of a partitioned function.

    Raises:
        CompileError: an operator can't be scheduled, or needs more on-chip memory than there is.
        ProgramError: the compiler made a program that breaks a rule or races with itself (a defect of ours).
    """
    return write(compile_graph(legalise(func), name, device, options))


def compile_graph(graph: Graph, name: str, device: Device, options: BuildOptions) -> Neff:
    """The same from a graph of blocks, as a value."""
    # As the model has them; on the device a number is a tensor of one element, and 64-bit integers have 32 bits.
    inputs = tuple(TensorInfo(t.name, t.shape, t.dtype) for t in graph.inputs)
    outputs = tuple(TensorInfo(t.name, t.shape, t.dtype) for t in graph.outputs)
    options.on_stage(f"{name}: schedule")
    kernels, partition_of = make_kernels(graph, _rules(options.fast_relayout), device, options.precisions)
    dtypes = choose_dtypes(kernels, options.precisions)
    if options.saturate_infinity:
        kernels = saturate(kernels, partition_of, dtypes)
    options.on_stage(f"{name}: place tensors")
    zones = _zones(kernels, partition_of, device)
    in_dram = {tensor for k in kernels for tensor in (k.out, *k.sources()) if tensor.kind != "temp"}
    plan = plan_memory(kernels, partition_of, dtypes, in_dram, zones.tensors_at, zones.tensors_bytes)
    options.on_stage(f"{name}: emit")
    program, builder = _emit(graph, kernels, plan, zones, device)
    options.on_stage(f"{name}: synchronise")
    program = synchronise(program, device)
    options.on_stage(f"{name}: check")
    verify(program, device)
    check_races(program, device)
    return Neff(
        name=name,
        program=program,
        device=device,
        weights=builder.arrays,
        inputs=inputs,
        outputs=outputs,
        options=options.to_dict(),
        compiler_version=VERSION,
        memory=_memory_report(program, plan, zones, builder.weights, device),
    )


_EMIT: dict[type, Callable[[Emitter, Kernel], None]] = {
    Contraction: emit_contraction,
    Product: emit_product,
    Transposition: emit_transposition,
    Reduction: emit_vector,
    NoneType: emit_vector,
}


@dataclass(frozen=True)
class Zones:
    """How each SBUF partition is divided, in bytes from its start."""

    scratch_at: int  # after the vectors
    scratch_bytes: int
    reduced_at: int
    reduced_bytes: int
    positions_at: int
    positions_bytes: int
    tensors_at: int
    tensors_bytes: int  # at most: what tensors leave is memory for weights, so that these come well before their use


def _zones(kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device) -> Zones:
    vectors = aligned(4 * sum(_vector_columns(kernel, partition_of, device) for kernel in kernels))
    temporaries = max((count_temporaries(kernel) for kernel in kernels if not kernel.by_dma), default=0)
    scratch = scratch_bytes(temporaries)
    reduced = 2 * 4 * MAX_TILE_ELEMS
    weights = weights_bytes(device)
    positions = zone_bytes(kernels)
    sizes = [vectors, scratch, reduced, positions]
    starts = [sum(sizes[:i]) for i in range(5)]
    least = starts[4] + weights
    if least >= device.sbuf_bytes_per_partition:
        raise CompileError(
            f"{device.name} has {device.sbuf_bytes_per_partition} bytes in each SBUF partition; constants, temporaries "
            f"and weights alone take {least}: describe a device with a larger SBUF"
        )
    return Zones(
        starts[1], scratch, starts[2], reduced, starts[3], positions, starts[4],
        device.sbuf_bytes_per_partition - least,
    )  # fmt: skip


def _vector_columns(kernel: Kernel, partition_of: dict[Tensor, int], device: Device) -> int:
    """At least as many columns as the kernel's constants by channel take, whether its operands are staged or not."""
    vectors = sum(1 for load in loads(kernel.expr) if load.tensor is not ACCUMULATOR and load.tensor.value is not None)
    if not vectors or kernel.by_dma:
        return 0
    most = device.partitions if isinstance(kernel.root, Reduction | None) else device.pe_columns
    resident = partition_firsts(kernel, partition_of, ())
    return vectors * max(len(_single(runs(kernel.channel.extent, firsts, most))) for firsts in (resident, [0]))


def _single(found: list[tuple[int, int, int]]) -> list[int]:
    return [start for start, _, count in found for _ in range(count)]


def _emit(
    graph: Graph, kernels: list[Kernel], plan: MemoryPlan, zones: Zones, device: Device
) -> tuple[Program, Builder]:
    weights_at = zones.tensors_at + plan.extent_bytes
    builder = Builder(
        device, 0, Ring(zones.scratch_at, zones.scratch_bytes), Ring(zones.reduced_at, zones.reduced_bytes),
        Ring(zones.positions_at, zones.positions_bytes),
        Ring(weights_at, device.sbuf_bytes_per_partition - weights_at),
    )  # fmt: skip
    emitter = Emitter(builder, plan, device, _dram_tensors(graph, kernels, plan, builder))
    for kernel in kernels:
        with builder.working_for(kernel.origins[0]):
            if kernel.by_dma:
                emit_movement(emitter, kernel)
                continue
            load_positions(emitter, kernel)
            _EMIT[type(kernel.root)](emitter, kernel)
    body = [*_load_vectors(builder), *builder.body]
    return Program(tuple(builder.tensors), tuple(builder.origins), tuple(body)), builder


def _dram_tensors(
    graph: Graph, kernels: list[Kernel], plan: MemoryPlan, builder: Builder
) -> dict[Tensor, InDram]:
    """Inputs and outputs as the model lays them out; what is spilled by partitions first, so that rows are long."""
    every = dict.fromkeys([*graph.inputs, *graph.outputs, *(t for k in kernels for t in (k.out, *k.sources()))])
    found: dict[Tensor, InDram] = {}
    for tensor in every:
        is_ours = tensor.kind not in ("input", "output")
        if is_ours and tensor not in plan.in_dram:
            continue
        dims = list(range(len(tensor.shape)))
        if is_ours:
            dims.sort(key=lambda d, t=tensor: (d != plan.partition_of[t], d))  # type: ignore[misc]
        dtype = plan.dtypes.get(tensor, device_dtype(tensor.dtype))
        shape = tuple(tensor.shape[d] for d in dims)
        index = builder.add_tensor(DramTensor(tensor.name, "scratch" if is_ours else tensor.kind, shape, dtype))
        found[tensor] = InDram(index, dtype, dram_strides(tensor.shape, dims))
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


def _memory_report(
    program: Program, plan: MemoryPlan, zones: Zones, weights: Ring, device: Device
) -> dict[str, int]:
    def total(kind: str) -> int:
        return sum(tensor.size_bytes for tensor in program.tensors if tensor.kind == kind)

    used = zones.tensors_at + plan.extent_bytes + weights.used
    return {
        "weights": total("weight"),
        "activations": plan.peak_bytes_per_partition * device.partitions,
        "spill": total("scratch"),
        "sbuf_peak": used * device.partitions,
    }


def can_schedule(
    call: relax.Call, is_constant: IsConstant, device: Device, precisions: Precisions, fast_relayout: bool
) -> Verdict:
    """Whether the kernel of a call can be scheduled on the device."""
    return verdict(call, is_constant, _rules(fast_relayout), device, precisions)
