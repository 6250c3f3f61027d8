"""Limits and cost terms that several instructions share."""

from collections.abc import Sequence
from math import gcd, prod

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa.affine import Affine
from tvm_neuron.isa.cost import Cost
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.isa.tile import MAX_FREE_DIMS, DramTile, Tile


def need_same_shape(mnemonic: str, *tiles: Tile) -> None:
    """Elementwise operands have one shape.

    Raises:
        ProgramError: they differ.
    """
    shapes = [list(tile.shape) for tile in tiles]
    if any(shape != shapes[0] for shape in shapes):
        raise ProgramError(f"{mnemonic}: operands have shapes {shapes}; they must be the same")


def need_column(mnemonic: str, column: Tile, result: Tile) -> None:
    """What is reduced is one value for each partition of the result.

    Raises:
        ProgramError: it has another shape.
    """
    if column.shape != (result.partitions, 1):
        raise ProgramError(f"{mnemonic}: reduces to {list(column.shape)}; it must be [{result.partitions}, 1]")


def elementwise_cycles(device: Device, elems: int, *tiles: Tile, factor: int = 1, rate: int = 1) -> int:
    """max(64, factor * N / rate), twice that where a free-axis step of 16 bytes or more halves the bandwidth."""
    strided = any(is_strided(device, tile) for tile in tiles)
    return max(device.elementwise_min_cycles, -(-factor * elems * (2 if strided else 1) // rate))


def vector_cost(device: Device, cycles: int) -> Cost:
    """Of an instruction of ACT or POOL: the engine's own overhead comes on top of what its elements take."""
    return Cost(cycles + device.instruction_overhead_cycles, device.instruction_latency_cycles)


def copy_rate(device: Device, result: Tile, source: Tile) -> int:
    """Elements of 16 bits that a lane of POOL copies or scales in a cycle: half as many where they lie apart."""
    if not _are_narrow(result, source) or result.space == source.space == "psum":
        return 1
    is_best = result.space == source.space and _is_contiguous(result) and _is_contiguous(source)
    return device.narrow_rate if is_best else max(1, device.narrow_rate // 2)


def pair_rate(device: Device, *tiles: Tile) -> int:
    """The same of instructions with two sources, which gain in SBUF alone."""
    is_near = _are_narrow(*tiles) and all(tile.space == "sbuf" for tile in tiles)
    return max(1, device.narrow_rate // 2) if is_near else 1


def _are_narrow(*tiles: Tile) -> bool:
    return all(size_bytes(tile.dtype) == 2 for tile in tiles)


def _is_contiguous(tile: Tile) -> bool:
    steps = [(step, count) for step, count in tile.dims if count > 1]
    return all(step == prod(count for _, count in steps[at + 1 :]) for at, (step, _) in enumerate(steps))


def is_strided(device: Device, tile: Tile) -> bool:
    """Whether the innermost step is long enough to halve the bandwidth."""
    step = next((step for step, count in reversed(tile.dims) if count > 1), 0)
    return step * size_bytes(tile.dtype) >= device.strided_penalty_bytes


def check_tile(tile: Tile, device: Device, counts: tuple[int, ...], who: str, any_start: bool = False) -> None:
    """Rules for every SBUF or PSUM operand, over all iterations of the loops (running `counts` times).

    `any_start`: the access may start at any partition, and elsewhere in each, as a DMA's can.

    Raises:
        ProgramError: outside the memory, a bad start partition, a skew, too many dimensions, over a PSUM bank's edge.
    """
    check_bounds(tile, device, counts, who)
    step = partition_start_step(tile.partitions)
    if not any_start and any(part % step for part in _parts(tile.partition, counts)):
        raise ProgramError(
            f"{who}: {tile.partitions} partitions start at {tile.partition}; "
            f"an access of that many starts at a multiple of {step}: lay it out so, or move it there by DMA"
        )
    if tile.skew and (tile.space != "sbuf" or not any_start):
        raise ProgramError(f"{who}: skewed by {tile.skew} bytes in {tile.space.upper()}; only a DMA does so, in SBUF")
    if not 1 <= len(tile.dims) <= MAX_FREE_DIMS or tile.free_elems < 1:
        raise ProgramError(f"{who}: free dimensions {tile.dims}; 1 to {MAX_FREE_DIMS} are possible, none of them empty")
    size = size_bytes(tile.dtype)
    if any(part % size for part in (*_parts(tile.offset, counts), tile.skew)):
        raise ProgramError(f"{who}: bytes {tile.offset} are not aligned to {tile.dtype}")
    bank = device.psum_bank_bytes
    if tile.space == "psum" and max(_residues(tile.offset, counts, bank)) + tile.extent_bytes > bank:
        raise ProgramError(
            f"{who}: {tile.extent_bytes} bytes from {tile.offset} cross a PSUM bank of {bank} bytes: use smaller "
            "tiles, or parts that lie in one bank"
        )


def check_bounds(tile: Tile, device: Device, counts: Sequence[int], who: str) -> None:
    """The tile lies inside its memory in every iteration of the loops.

    Raises:
        ProgramError: it doesn't.
    """
    size = device.sbuf_bytes_per_partition if tile.space == "sbuf" else device.psum_bytes_per_partition
    low, high = tile.offset.span(counts)
    if low < 0 or high + tile.extent_bytes > size:
        raise ProgramError(
            f"{who}: bytes {low} to {high + tile.extent_bytes} of each {tile.space.upper()} partition; "
            f"{device.name} has {size}"
        )
    first, last = tile.partition.span(counts)
    if first < 0 or tile.partitions < 1 or last + tile.partitions > device.partitions:
        raise ProgramError(
            f"{who}: partitions {first} to {last + tile.partitions} of {tile.space.upper()}; "
            f"{device.name} has {device.partitions}"
        )


def check_dram_bounds(tile: DramTile, elems: int, tensor: str, counts: Sequence[int], who: str) -> None:
    """The tile lies inside its tensor of `elems` elements in every iteration of the loops.

    Raises:
        ProgramError: it doesn't.
    """
    low, high = tile.offset.span(counts)
    end = high + 1 + sum(step * (count - 1) for step, count in tile.dims)
    if low < 0 or end > elems:
        raise ProgramError(f"{who}: elements {low} to {end} of tensor '{tensor}', which has {elems}")


def _parts(address: Affine, counts: Sequence[int]) -> tuple[int, ...]:
    """What an address is the sum of; steps of loops that run once don't count."""
    return (address.base, address.phase, address.wrap, *(step for d, step in address.terms if counts[d] > 1))


def _residues(offset: Affine, counts: Sequence[int], bank: int) -> set[int]:
    """Where in a bank the address can be, over all iterations."""
    ring = offset.wrap or bank
    found = {offset.phase % ring}
    for depth, step in offset.terms:
        # Steps of a ring repeat after ring / gcd of them.
        turns = min(counts[depth], ring // gcd(ring, step))
        found = {(at + step * turn) % ring for at in found for turn in range(turns)}
    return {(offset.base + at) % bank for at in found}


def partition_start_step(partitions: int) -> int:
    """Of what the first partition must be a multiple: 65-128 partitions start at 0, 33-64 at 0 or 64, else at 32s."""
    return 128 if partitions > 64 else 64 if partitions > 32 else 32
