"""emit_statistics: the mean of a row in each partition and the variance around it, from those of its parts."""

from dataclasses import replace
from itertools import product
from math import prod

from tvm_neuron.codegen.emit.builder import Scratch
from tvm_neuron.codegen.emit.targets import Emits
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, BnAggr, BnStats, Tile
from tvm_neuron.isa.dtypes import size_bytes

_NUMBERS = 6  # that tell of a part: how many its even elements are, their mean and variance; then its odd ones


def emit_statistics(builder: Emits, result: Tile, parts: list[Tile], slot: Scratch) -> None:
    """`result` is [P, 2], the `parts` together a row in each partition."""
    known = slot.tile(result.partitions, ((1, _NUMBERS * len(parts)),))
    for number, part in enumerate(parts):
        place = replace(known, offset=known.offset.plus(4 * _NUMBERS * number), dims=((1, _NUMBERS),))
        builder.emit(BnStats(result=place, source=part))
    builder.emit(BnAggr(result=result, source=known))


def statistics_bytes(parts: list[Tile]) -> int:
    """Bytes of each partition for what is known of the parts of a row."""
    return 4 * _NUMBERS * len(parts)


def parts_of(row: Tile, device: Device) -> list[Tile]:
    """The row in as few parts as instructions take, all about as long."""
    most, dims = device.moving_max_elems, row.dims
    whole = next(at for at in range(len(dims)) if prod(count for _, count in dims[at + 1 :]) <= most)
    (step, count), inner = dims[whole], dims[whole + 1 :]
    turns = -(-count // (most // prod(n for _, n in inner)))
    size = -(-count // turns)
    return [
        replace(
            row, offset=row.offset.plus((sum(outer) + low * step) * size_bytes(row.dtype)),
            dims=((step, min(size, count - low)), *inner),
        )
        for outer in product(*(range(0, s * n, s) if s else [0] * n for s, n in dims[:whole]))
        for low in range(0, count, size)
    ]  # fmt: skip


def statistics_cycles(elems: int, device: Device) -> int:
    """For how long POOL works on a row of so many elements."""
    row = Tile("sbuf", "float32", Affine(), 1, Affine(), ((1, elems),))
    parts = parts_of(row, device)
    known = replace(row, dims=((1, _NUMBERS * len(parts)),))
    found = [BnStats(result=replace(row, dims=((1, _NUMBERS),)), source=part) for part in parts]
    costs = [part.cost(device) for part in (*found, BnAggr(result=replace(row, dims=((1, 2),)), source=known))]
    return sum(cost.busy_cycles for cost in costs)
