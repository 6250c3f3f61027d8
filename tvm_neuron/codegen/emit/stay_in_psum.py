"""stay_in_psum: what the PE array makes for ACT and POOL alone stays in PSUM, where they read it.

Scores of attention and rows of a norm are read two or three times, first of all to be reduced: to copy them to SBUF
would take an instruction, and for large ones the whole of ACT, before the first of these. An access covers one bank at
most, so that a chunk of partitions has to fit into one.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from math import prod

from tvm_neuron.allocation.layouts import on_chip
from tvm_neuron.allocation.memory_plan import MemoryPlan
from tvm_neuron.allocation.storage import OnChip
from tvm_neuron.codegen.steps import Alternative
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import size_bytes
from tvm_neuron.schedule.kernel import ROOT, Contraction, Gather, Kernel, Product, Scan, Transposition
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.schedule.uses import readers_of, writers_of

STAY_IN_PSUM = Alternative("stay_in_psum", "the order of kernels is known, and with it what needs room at a time")
_MOST_BANKS = 2  # for what stays: the array fills the others in turn, and waits where they are few
_DTYPE = "float32"  # in which PSUM holds everything


def stay_in_psum(
    kernels: Sequence[Kernel], plan: MemoryPlan, leaving: Container[Tensor], device: Device
) -> Mapping[Tensor, OnChip]:
    """Where the tensors that stay lie, in the last banks; each has its own from its writer to its last reader.

    None of those that are `leaving` the core, for transfers know SBUF alone.
    """
    writers, readers = writers_of(kernels), readers_of(kernels)
    place = {kernel: number for number, kernel in enumerate(kernels)}
    busy_until = [-1] * min(_MOST_BANKS, device.psum_banks - 1)
    found: dict[Tensor, OnChip] = {}
    for number, kernel in enumerate(kernels):
        tensor, its = kernel.out, readers.get(kernel.out, [])
        if tensor in plan.in_dram or tensor in leaving or len(writers[tensor]) != 1:
            continue
        if not may_stay(kernel, its) and not _is_better_there(kernel, its, found):
            continue
        if plan.dtypes[tensor] != _DTYPE:  # it would not be rounded, which must not depend on the order
            continue
        lies = _lies(tensor, plan.partition_of[tensor], device)
        if lies is None:
            continue
        banks = 1 if lies.joins_chunks else _chunks(tensor, lies.partition_dim)
        places = range(len(busy_until) - banks + 1)
        at = next((at for at in places if all(end < number for end in busy_until[at : at + banks])), None)
        if at is None:
            continue
        busy_until[at : at + banks] = [max(place[reader] for reader in its)] * banks
        found[tensor] = replace(lies, offset=(device.psum_banks - at - banks) * device.psum_bank_bytes)
    return found


def may_stay(kernel: Kernel, readers: Sequence[Kernel]) -> bool:
    """Whether the array makes all of what the kernel writes, and engines that reach PSUM are all that read it."""
    root, out = kernel.root, kernel.out
    if not isinstance(root, Contraction | Product | Transposition) or kernel.expr is not ROOT or not readers:
        return False
    if out.kind != "temp" or out.dtype != _DTYPE or (isinstance(root, Contraction) and root.side):
        return False
    return all(_reaches(reader, out) for reader in readers)


def _is_better_there(kernel: Kernel, readers: Sequence[Kernel], there: Container[Tensor]) -> bool:
    """Whether it makes a value of each row for POOL to compute with what lies in SBUF.

    POOL reads two operands at once that come from different memories.
    """
    root, out = kernel.root, kernel.out
    if not isinstance(root, Product) or not root.is_sum or out.kind != "temp" or out.dtype != _DTYPE or not readers:
        return False
    others = [load.tensor for reader in readers for load in reader.operand_loads() if load.tensor is not out]
    is_pair = all(reader.root is None and len(set(reader.sources())) == 2 for reader in readers)
    return is_pair and all(_reaches(reader, out) for reader in readers) and not any(t in there for t in others)


def _reaches(reader: Kernel, tensor: Tensor) -> bool:
    root = reader.root
    if reader.by_dma or isinstance(root, Gather | Scan) or tensor in reader.multiplied():
        return False
    if isinstance(root, Contraction) and root.scale and root.scale.tensor is tensor:
        return False
    return not (isinstance(root, Transposition) and root.source.tensor is tensor)


def _lies(tensor: Tensor, dim: int, device: Device) -> OnChip | None:
    """How it lies from byte 0 of PSUM on; None where a chunk of partitions needs more than one bank.

    Or where it has more partitions than the array has columns, which write one each, always the same.
    """
    elems = prod(extent for d, extent in enumerate(tensor.shape) if d != dim)
    chunks, bank = _chunks(tensor, dim), device.psum_bank_bytes // size_bytes(_DTYPE)
    if elems > bank or tensor.shape[dim] > device.pe_columns < PARTITIONS:
        return None
    lies = replace(on_chip(_DTYPE, dim, 0, (0,) * len(tensor.shape), tensor.shape), space="psum")
    if elems * chunks > bank:
        return replace(lies, chunk_elems=bank, joins_chunks=False)
    return replace(lies, chunk_elems=0) if tensor.is_spread else lies


def _chunks(tensor: Tensor, dim: int) -> int:
    """On how many chunks of partitions it lies, one after the other."""
    return 1 if tensor.is_spread else -(-tensor.shape[dim] // PARTITIONS)
