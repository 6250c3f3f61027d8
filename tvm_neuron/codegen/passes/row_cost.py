"""row_duration_ps: how long a row group takes in so many rows, by the costs of its instructions."""

from collections.abc import Iterable, Iterator
from math import prod

from tvm_neuron.codegen.passes.row_group import RowGroup
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Matmul, TensorCopy, TensorReduce, Tile, Transpose
from tvm_neuron.isa.instruction import Instruction
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.roles import is_constant_contraction
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.sim.clock import clock_hz, duration_ps

_WAITED = 256  # elements of a row: of a longer one two engines have half each, or parts were done while others came


def row_duration_ps(group: RowGroup, rows: int, device: Device) -> int:
    """Its instructions one behind the other; those that only several rows take, with what waits for their results.

    Rather too little for one row than too much: several must gain whatever runs beside, and other weights come slower
    where their rows in DRAM are short. Arithmetic that will be fused into a contraction counts, too, for any number.
    """
    columns, total = group.extent // rows, 0
    waited = min(columns, _WAITED)
    for block in group.blocks:
        if is_constant_contraction(block):
            total += _sum_ps(_computed(block, rows, columns, device), device)
        elif block.combine:
            total += _sum_ps([_reduce(rows, waited)], device)
            if rows > 1:
                total += _sum_ps(_exchanged(rows), device, device.instruction_latency_cycles)
        else:
            row = _tile(rows, waited if block.output.elems > 1 else 1)
            total += _sum_ps([TensorCopy(result=row, source=row)], device)
        if block.output.kind == "output":
            stored = DramTile(0, "float32", Affine(), ((columns, rows), (1, columns)))
            total += _sum_ps([DmaCopy(target=stored, source=_tile(rows, columns), ring=0)], device)
    return total


def _computed(head: Block, rows: int, columns: int, device: Device) -> Iterator[Instruction]:
    """The contraction, row by row with weights of its own, in parts that the array takes; the rows transposed."""
    parts, depth = -(-columns // device.pe_columns), -(-prod(a.extent for a in head.reduction) // device.pe_rows)
    weights = _tile(device.pe_rows, depth * columns, "bfloat16")
    yield from [DmaCopy(target=weights, source=weights, ring=0)] * rows
    used = _tile(device.pe_rows, min(columns, device.pe_columns), "bfloat16")
    data, sums = _tile(device.pe_rows, 1, "bfloat16"), _tile(used.free_elems, 1)
    yield from [Matmul(stationary=used, moving=data, psum=sums, first=None)] * (rows * parts * depth)
    turned = _tile(min(columns, PARTITIONS), rows)
    yield from [Transpose(psum=turned, source=turned)] * -(-columns // PARTITIONS)


def _reduce(rows: int, columns: int) -> Instruction:
    return TensorReduce(result=_tile(rows, 1), source=_tile(rows, columns), op="max", axes=1)


def _exchanged(rows: int) -> list[Instruction]:
    """What all rows have found, to the partition of each: transposed, copied from PSUM, reduced."""
    every = _tile(rows, rows)
    return [Transpose(psum=every, source=every), TensorCopy(result=every, source=every), _reduce(rows, rows)]


def _tile(partitions: int, elems: int, dtype: str = "float32") -> Tile:
    return Tile("sbuf", dtype, Affine(), partitions, Affine(), ((1, elems),))


def _sum_ps(instructions: Iterable[Instruction], device: Device, late_cycles: int = 0) -> int:
    """How long they take, each with so many cycles until the next one can read its result."""
    cycles = ((i.engine, i.cost(device).busy_cycles + late_cycles) for i in instructions)
    return sum(duration_ps(count, clock_hz(device, engine)) for engine, count in cycles)
