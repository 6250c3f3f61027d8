"""park: a tensor that no kernel touches for long goes to DRAM as a whole and comes back as another one.

Kernels on both sides then find it in SBUF. If it were in DRAM for all of them, each would bring and store parts of it:
of a padded tensor, rows of a few bytes that take one descriptor each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm_neuron.codegen.tiles.copies import copy_of
from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.schedule.kernel import Gather, Kernel
from tvm_neuron.schedule.tensor import Tensor

AHEAD = 3  # kernels that run while it comes back


@dataclass(frozen=True)
class Parked:
    """All kernels with those that store and load the tensor; where the group begins and ends among them."""

    kernels: list[Kernel]
    first: int
    end: int
    stored: Tensor  # in DRAM
    again: Tensor  # in SBUF, for later kernels


def park(
    kernels: Sequence[Kernel], first: int, end: int, tensor: Tensor, partition_of: Mapping[Tensor, int]
) -> Parked | None:
    """Parks a tensor while kernels [first, end) run; None where one of them touches it or a later one makes of it."""
    before = [step for step in range(first) if tensor in kernels[step].tensors]
    later = [step for step in range(end, len(kernels)) if tensor in kernels[step].tensors]
    is_idle = before and later and not any(tensor in kernel.tensors for kernel in kernels[first:end])
    if not is_idle or any(kernels[step].out is tensor or _looks_up(kernels[step], tensor) for step in later):
        return None
    stored = Tensor(f"{tensor.name}.stored", tensor.shape, tensor.dtype)
    again = Tensor(f"{tensor.name}.again", tensor.shape, tensor.dtype)
    shape, part, start = tensor.shape, partition_of[tensor], [0] * len(tensor.shape)
    at, back = before[-1] + 1, max(end, later[0] - AHEAD)
    rest = [restrict(kernel, None, 0, 1, {tensor: Rows(again, 0, 0)}) for kernel in kernels[back:]]
    writer, reader = kernels[before[-1]].origins[0], kernels[later[0]].origins[0]
    store = copy_of(writer, shape, part, (tensor, start), (stored, start), by_dma=True)
    load = copy_of(reader, shape, part, (stored, start), (again, start), by_dma=True)
    found = [*kernels[:at], store, *kernels[at:back], load, *rest]
    return Parked(found, first + 1, end + 1, stored, again)


def _looks_up(kernel: Kernel, tensor: Tensor) -> bool:
    return isinstance(kernel.root, Gather) and kernel.root.data.tensor is tensor
