"""Zones: what each SBUF partition is divided into, besides the tensors themselves."""

from dataclasses import dataclass

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.codegen.emit.contraction import runs_of
from tvm_neuron.codegen.emit.corners import is_made
from tvm_neuron.codegen.emit.diagonals import diagonals_bytes, masks_bytes
from tvm_neuron.codegen.emit.emitter import partition_firsts
from tvm_neuron.codegen.emit.factored import MANY_BLOCKS, factored
from tvm_neuron.codegen.emit.positions import is_vector, zone_bytes
from tvm_neuron.codegen.emit.scale_group import scaled_bytes
from tvm_neuron.codegen.emit.vector import reduced_bytes, scratch_bytes
from tvm_neuron.codegen.emit.vectors import LEAST_COLUMNS, columns_of
from tvm_neuron.codegen.emit.weight_tiles import weight_tiles
from tvm_neuron.errors import CompileError
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.expr import loads
from tvm_neuron.schedule.kernel import Contraction, Kernel, Reduction
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import runs


@dataclass(frozen=True)
class Zones:
    """How each SBUF partition is divided, in bytes from its start: first what stays, the vectors and the residents."""

    resident_at: int
    resident_bytes: int
    scratch_at: int
    scratch_bytes: int
    reduced_at: int
    reduced_bytes: int
    positions_at: int
    positions_bytes: int
    masks_at: int
    masks_bytes: int
    diagonals_at: int
    diagonals_bytes: int
    scaled_at: int
    scaled_bytes: int
    factors_at: int
    factors_bytes: int
    tensors_at: int
    vectors_columns: int  # of a table
    vectors_in_turns: bool  # whether there are two of them, of more that come in turns
    tensors_bytes: int  # at most: what tensors leave is memory for weights, so that these come well before their use


def divide(
    kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device, resident_bytes: int, ring_bytes: int
) -> Zones:
    """The zones with so much for weights that stay, and at least so much for those on their way to the PE array.

    Raises:
        CompileError: nothing is left for tensors.
    """
    columns, in_turns = _vectors(kernels, partition_of, device)
    vectors = aligned(4 * columns * (2 if in_turns else 1))
    sizes = [
        vectors, resident_bytes, scratch_bytes(kernels, device), reduced_bytes(kernels), zone_bytes(kernels),
        masks_bytes(kernels, device), diagonals_bytes(kernels, device), scaled_bytes(kernels),
        factors_bytes(kernels, partition_of, device),
    ]  # fmt: skip
    starts = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    least = starts[-1] + ring_bytes
    if least >= device.sbuf_bytes_per_partition:
        raise CompileError(
            f"{device.name} has {device.sbuf_bytes_per_partition} bytes in each SBUF partition; constants, temporaries "
            f"and weights alone take {least}: describe a device with a larger SBUF"
        )
    return Zones(
        starts[1], sizes[1], starts[2], sizes[2], starts[3], sizes[3], starts[4], sizes[4],
        starts[5], sizes[5], starts[6], sizes[6], starts[7], sizes[7], starts[8], sizes[8], starts[9], columns,
        in_turns, device.sbuf_bytes_per_partition - least,
    )  # fmt: skip


def _vectors(kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device) -> tuple[int, bool]:
    """How many columns a table of vectors has, and whether there are several tables that come in turns."""
    every = vector_columns(kernels, partition_of, device)
    if every <= 2 * LEAST_COLUMNS:
        return every, False
    most = max(LEAST_COLUMNS, *(vector_columns([kernel], partition_of, device) for kernel in kernels))
    return (most, True) if 2 * most < every else (every, False)


def vector_columns(kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device) -> int:
    """At least as many columns as the constants by channel take, whether operands are staged or not.

    Kernels in tiles have the same constants, which lie in SBUF once.
    """
    columns: dict[tuple[int, int], int] = {}
    for kernel in kernels:
        known = [v for load in loads(kernel.expr) if is_vector(load, kernel) and (v := load.tensor.value) is not None]
        if not known or kernel.by_dma:
            continue
        most = device.partitions if isinstance(kernel.root, Reduction | None) else device.pe_columns
        resident = partition_firsts(kernel, partition_of, ())
        found = [run for firsts in (resident, [0]) for run in runs(kernel.channel.extent, firsts, most)]
        for phase in {start % device.partitions for start, _, _ in found}:
            for value in known:
                columns[id(value), phase] = columns_of(len(value), phase, device.partitions)
    return sum(columns.values())


def factors_bytes(kernels: list[Kernel], partition_of: dict[Tensor, int], device: Device) -> int:
    """At least what all stationary tiles that are mostly zeros are made of takes, whether data are staged or not."""
    masks: dict[object, int] = {}
    numbers: dict[int, int] = {}
    for kernel in kernels:
        root = kernel.root
        if not isinstance(root, Contraction) or not root.has_zeros or is_made(root, device):
            continue
        item = size_bytes(root.dtype)
        ways = [weight_tiles(kernel, *runs_of(kernel, partition_of, to, device), device) for to in ((), kernel.tensors)]
        for tiles in {id(tiles): tiles for tiles in ways}.values():  # mostly the same ones
            found = [each for tile in tiles if (each := factored(tile, MANY_BLOCKS))]
            masks |= {(each.mask.shape, each.mask.tobytes()): item * each.mask.shape[1] for each in found}
            most = max(numbers.get(id(root.weights), 0), item * sum(each.numbers[0].size for each in found))
            numbers[id(root.weights)] = most
    return aligned(sum(masks.values()) + sum(numbers.values()))
