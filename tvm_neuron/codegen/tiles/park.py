"""park: a tensor that no kernel touches for long goes to DRAM as a whole and comes back as another one.

Kernels on both sides then find it in SBUF. If it were in DRAM for all of them, each would bring and store parts of it:
of a padded tensor, rows of a few bytes that take one descriptor each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tvm_neuron.codegen.tiles.copies import copy_of
from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.codegen.tiles.rows import channels
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
    other: Tensor  # in SBUF, for later kernels or, of a tensor that was only begun, for the earlier ones


def park(
    kernels: Sequence[Kernel], first: int, end: int, tensor: Tensor, partition_of: Mapping[Tensor, int]
) -> Parked | None:
    """Parks a tensor while kernels [first, end) run; None where one of them touches it, or it can't be."""
    before = [step for step in range(first) if tensor in kernels[step].tensors]
    later = [step for step in range(end, len(kernels)) if tensor in kernels[step].tensors]
    is_idle = before and later and not any(tensor in kernel.tensors for kernel in kernels[first:end])
    if not is_idle:
        return None
    if any(kernels[step].out is tensor for step in later):
        return _park_begun(kernels, (first, end), tensor, before, later, partition_of[tensor])
    if any(_looks_up(kernels[step], tensor) for step in later):
        return None
    stored = Tensor(f"{tensor.name}.stored", tensor.shape, tensor.dtype)
    again = Tensor(f"{tensor.name}.again", tensor.shape, tensor.dtype)
    shape, part, start = tensor.shape, partition_of[tensor], [0] * len(tensor.shape)
    at, back = before[-1] + 1, max(end, later[0] - AHEAD)
    there = {tensor: Rows(again, 0, 0)}
    rest = [restrict(k, None, 0, 1, there) if tensor in k.tensors else k for k in kernels[back:]]
    writer, reader = kernels[before[-1]].origins[0], kernels[later[0]].origins[0]
    store = copy_of(writer, shape, part, (tensor, start), (stored, start), by_dma=True)
    load = copy_of(reader, shape, part, (stored, start), (again, start), by_dma=True)
    found = [*kernels[:at], store, *kernels[at:back], load, *rest]
    return Parked(found, first + 1, end + 1, stored, again)


def _park_begun(
    kernels: Sequence[Kernel], group: tuple[int, int], tensor: Tensor, before: Sequence[int], later: Sequence[int],
    part: int,
) -> Parked | None:  # fmt: skip
    """Parks the channels that were made, as a tensor of their own; the whole one begins when they come back."""
    first, end = group
    writers = [kernels[step] for step in before]
    low, high = channels(writers, part)
    shape, start = list(tensor.shape), [0] * len(tensor.shape)
    shape[part], start[part] = high - low, low
    is_read = any(tensor in kernel.sources() for kernel in writers)
    made = sum(prod(axis.extent for axis in (kernel.channel, *kernel.free)) for kernel in writers)
    if tensor.kind != "temp" or is_read or made != prod(shape):
        return None
    begun = Tensor(f"{tensor.name}.begun", tuple(shape), tensor.dtype)
    stored = Tensor(f"{tensor.name}.stored", tuple(shape), tensor.dtype)
    at, back, zero = before[-1] + 1, max(end, later[0] - AHEAD), [0] * len(shape)
    head = [restrict(k, None, 0, 1, {tensor: Rows(begun, part, low)}) if k.out is tensor else k for k in kernels[:at]]
    store = copy_of(writers[-1].origins[0], shape, part, (begun, zero), (stored, zero), by_dma=True)
    load = copy_of(kernels[later[0]].origins[0], shape, part, (stored, zero), (tensor, start), by_dma=True)
    found = [*head, store, *kernels[at:back], load, *kernels[back:]]
    return Parked(found, first + 1, end + 1, stored, begun)


def _looks_up(kernel: Kernel, tensor: Tensor) -> bool:
    return isinstance(kernel.root, Gather) and kernel.root.data.tensor is tensor
