"""work_of: about how long a kernel keeps each engine, from the costs of the instructions it will become.

Beside it `load_ps`: how long its weights keep the DRAM.
"""

from collections import Counter
from math import prod

from tvm_neuron.codegen.emit.arithmetic import Arithmetic
from tvm_neuron.codegen.emit.scan import scan_cycles
from tvm_neuron.codegen.emit.statistics import statistics_cycles
from tvm_neuron.codegen.emit.targets import Operand
from tvm_neuron.codegen.emit.vector import MAX_TILE_ELEMS
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, Instruction, Tile
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.engines import COMPUTE
from tvm_neuron.isa.tile import Dims
from tvm_neuron.schedule.expr import Load, axes_of
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel, Product, Reduction, Scan, Statistics, Transposition
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.sim.clock import clock_hz, duration_ps


def work_of(kernel: Kernel, device: Device) -> dict[str, int]:
    """By engine; 0 for one that it does not need. Transfers are not counted."""
    if kernel.by_dma:
        return dict.fromkeys(COMPUTE, 0)
    busy = Counter() if isinstance(kernel.root, Scan) else Counter(_ends(kernel, device))
    busy["pe"] += _matmul_cycles(kernel, device)
    if isinstance(kernel.root, Statistics):
        elems = prod(axis.extent for axis in kernel.root.axes)
        rows = _rows(kernel, device) * prod(axis.extent for axis in kernel.free[:-1])
        busy["pool"] += rows * statistics_cycles(elems, device)
    elif isinstance(kernel.root, Scan):
        rows = _rows(kernel, device) * prod(axis.extent for axis in kernel.free if axis not in kernel.whole)
        busy["pool"] += rows * scan_cycles(kernel.root, device)
    elif isinstance(kernel.root, Reduction):
        busy["pool"] += _rows(kernel, device) * prod(a.extent for a in (*kernel.free, *kernel.root.axes)) // 2
    return {engine: duration_ps(busy[engine], clock_hz(device, engine)) if busy[engine] else 0 for engine in COMPUTE}


def load_ps(kernel: Kernel, device: Device) -> int:
    """How long the kernel's weights take to come from DRAM."""
    if not isinstance(kernel.root, Contraction):
        return 0
    elems = kernel.root.weights.size
    if kernel.root.has_zeros:
        rows, columns = device.pe_rows, device.pe_columns
        pairs = -(-kernel.root.weights.shape[0] // rows) * -(-kernel.root.weights.shape[-1] // columns)
        elems = elems * kernel.root.used_tiles(rows, columns) // pairs
    return duration_ps(elems * size_bytes(kernel.root.dtype), device.dram_bytes_per_second)


def _rows(kernel: Kernel, device: Device) -> int:
    return -(-kernel.channels // device.partitions)


def _matmul_cycles(kernel: Kernel, device: Device) -> int:
    """One for each column that streams through the array, and no fewer than a transposition takes."""
    columns = -(-kernel.channels // device.pe_columns)
    free = prod(axis.extent for axis in kernel.free)
    root = kernel.root
    if isinstance(root, Contraction):
        steps = prod(axis.extent for axis in root.steps)
        free //= root.side.extent if root.side else 1
        passes = (device.fp32_matmul_passes or 1) if root.dtype == "float32" else 1
        return root.used_tiles(device.pe_rows, device.pe_columns) * free * steps * passes
    if isinstance(root, Product):
        passes = (device.fp32_matmul_passes or 1) if root.is_sum else 1
        runs = -(-root.depth.extent // device.pe_rows)
        return columns * free * runs * passes * prod(axis.extent for axis in root.steps)
    if isinstance(root, Transposition):
        shortest = min(device.matmul_min_cycles, kernel.channel.extent, device.pe_columns)
        full, rest = divmod(root.row.extent, PARTITIONS)
        cycles = full * PARTITIONS + (max(rest, shortest) if rest else 0)
        # Where the array multiplies no float32, layouts were measured with one pass as the price, not with the clock's.
        is_priced = root.source.tensor.dtype == "float32" and device.fp32_matmul_passes
        passes = device.fp32_transpose_passes if is_priced else 1
        return columns * free // root.row.extent * cycles * passes
    return 0


def _ends(kernel: Kernel, device: Device) -> dict[str, int]:
    """Cycles of the arithmetic on the way out."""
    costs = _Costs(device)
    whole, single = ((1, MAX_TILE_ELEMS),), ((1, 1),)
    inner = set(kernel.free[-1:])

    def resolve(load: Load) -> Operand:
        if load is ROOT:
            return Tile("psum", "float32", Affine(), 1, Affine(), whole)
        return Tile("sbuf", "bfloat16", Affine(), 1, Affine(), whole if inner & set(axes_of(load)) else single)

    Arithmetic(costs, costs, (1, whole), resolve).store(kernel.expr, costs.tile(1, whole))
    elems = prod(axis.extent for axis in kernel.free) * _rows(kernel, device)
    if kernel.stepped:  # an instruction for each run of partitions
        least = device.elementwise_min_cycles + device.instruction_overhead_cycles
        elems = max(elems, least * prod(kernel.stepped.values()))
    return {engine: cycles * elems // MAX_TILE_ELEMS for engine, cycles in costs.cycles.items()}


class _Costs:
    """A builder and scratch memory that only add up cycles."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.cycles: Counter[str] = Counter()

    def emit(self, instruction: Instruction) -> None:
        """Takes the next instruction."""
        self.cycles[instruction.engine] += instruction.cost(self.device).busy_cycles

    def tile(self, partitions: int, dims: Dims) -> Tile:
        """A new float32 tile."""
        return Tile("sbuf", "float32", Affine(), partitions, Affine(), dims)
