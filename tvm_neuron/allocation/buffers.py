"""buffers: how long tensors live, the buffers that they need, and how far these reach at each step."""

from collections.abc import Container, Mapping, Sequence
from itertools import accumulate

from tvm_neuron.allocation.in_place import Life
from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.allocation.place import Buffer
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.sums import sums_on_the_way
from tvm_neuron.schedule.tensor import Tensor


def steps_of(kernels: Sequence[Kernel]) -> dict[Tensor, list[int]]:
    """The steps of the kernels that read or write each tensor."""
    touched: dict[Tensor, list[int]] = {}
    for step, kernel in enumerate(kernels):
        for tensor in kernel.tensors:
            touched.setdefault(tensor, []).append(step)
    return touched


def life_of(kernels: Sequence[Kernel]) -> dict[Tensor, tuple[int, int]]:
    """The first and the last step at which a kernel reads or writes each tensor; sums may be written a step before."""
    life = {tensor: (steps[0], steps[-1]) for tensor, steps in steps_of(kernels).items()}
    sums = sums_on_the_way(kernels)
    for step, kernel in enumerate(kernels):
        if kernel in sums:
            out = sums[kernel][0].out
            life[out] = min(life[out][0], step), life[out][1]
    return life


def buffers_of(
    life: Life, sizes: Mapping[Tensor, int], shared: Mapping[Tensor, Tensor], in_dram: Container[Tensor]
) -> tuple[list[Buffer], dict[Tensor, Tensor]]:
    """The buffers of whole tensors, and for tensors that lie in the buffer of another one the one that it is of."""
    spans, owners = dict(life), dict[Tensor, Tensor]()
    for tensor, before in shared.items():
        owner = owners[tensor] = owners.get(before, before)
        spans[owner] = spans[owner][0], life[tensor][1]
    return [
        Buffer(tensor, sizes[tensor], *span)
        for tensor, span in spans.items()
        if tensor not in in_dram and tensor not in owners
    ], owners


def extents(buffers: Sequence[Buffer], offsets: Mapping[object, int], steps: int) -> list[int]:
    """At each step the end of all buffers that are alive then or later."""
    ends = [0] * steps
    for buffer in buffers:
        ends[buffer.last] = max(ends[buffer.last], aligned(offsets[buffer.name] + buffer.size))
    return list(accumulate(reversed(ends), max))[::-1]
