"""begin_late: a part that is made long before the rest of its tensor waits as a tensor of its own.

Of a concatenation one half may come from a layer far back. The whole begins when the other half is made; an engine
copies the part there, which takes far less time than its way to DRAM and back.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from tvm_neuron.codegen.tiles.copies import copy_of
from tvm_neuron.codegen.tiles.restrict import Rows, restrict
from tvm_neuron.codegen.tiles.rows import channels
from tvm_neuron.codegen.tiles.usage import NEAR, steps_of
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS


def begin_late(kernels: Sequence[Kernel], partition_of: dict[Tensor, int], dtypes: dict[Tensor, str]) -> list[Kernel]:
    """The kernels, with such parts apart. Adds their tensors to `partition_of` and `dtypes`."""
    found = list(kernels)
    copies: dict[int, list[Kernel]] = {}
    for tensor, steps in steps_of(kernels).items():
        gap = next((n for n, (a, b) in enumerate(pairwise(steps), 1) if b - a > NEAR), 0)
        dim = partition_of[tensor]
        span = _span([kernels[step] for step in steps[:gap]], tensor, dim)
        if span is None or kernels[steps[gap]].out is not tensor:
            continue
        low, high = span
        shape, start, there = list(tensor.shape), [0] * len(tensor.shape), [0] * len(tensor.shape)
        shape[dim], there[dim] = high - low, low
        begun = Tensor(f"{tensor.name}.begun", tuple(shape), tensor.dtype)
        partition_of[begun], dtypes[begun] = dim, dtypes[tensor]
        for step in steps[:gap]:
            found[step] = restrict(found[step], None, 0, 1, {tensor: Rows(begun, dim, low)})
        origin = kernels[steps[gap]].origins[0]
        copy = copy_of(origin, shape, dim, (begun, start), (tensor, there), by_dma=False)
        copies.setdefault(steps[gap], []).append(copy)
    return [part for step, kernel in enumerate(found) for part in (*copies.get(step, ()), kernel)]


def _span(writers: Sequence[Kernel], tensor: Tensor, dim: int) -> tuple[int, int] | None:
    """The whole chunks of partitions, but not all, of which these kernels write every element and read none."""
    if not writers or tensor.kind != "temp":
        return None
    if any(k.by_dma or k.out is not tensor or tensor in k.sources() for k in writers):
        return None
    low, high = channels(writers, dim)
    if low % PARTITIONS or high - low == tensor.shape[dim]:
        return None
    made = sum(prod(axis.extent for axis in (kernel.channel, *kernel.free)) for kernel in writers)
    return (low, high) if made * tensor.shape[dim] == tensor.elems * (high - low) else None
