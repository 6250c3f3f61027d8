"""usage: how much of each SBUF partition tensors take at each step, and between one step and the next."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tvm_neuron.allocation.layouts import bytes_on_chip
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor


@dataclass(frozen=True)
class Usage:
    """`alive[s]` bytes while kernel s runs, `crossing[s]` between s - 1 and s; each tensor's first and last step."""

    alive: list[int]
    crossing: list[int]
    life: dict[Tensor, tuple[int, int]]


def bytes_of(tensor: Tensor, partition_of: Mapping[Tensor, int], dtypes: Mapping[Tensor, str]) -> int:
    """Bytes of each partition that a tensor takes."""
    return bytes_on_chip(dtypes[tensor], partition_of[tensor], tensor.shape)


def usage(
    kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int], dtypes: Mapping[Tensor, str],
    in_dram: Container[Tensor],
) -> Usage:  # fmt: skip
    """Of the tensors that are not in DRAM."""
    life: dict[Tensor, tuple[int, int]] = {}
    for step, kernel in enumerate(kernels):
        for tensor in (kernel.out, *kernel.sources()):
            life[tensor] = (life.get(tensor, (step, step))[0], step)
    begins, ends = [0] * (len(kernels) + 1), [0] * (len(kernels) + 1)
    for tensor, (first, last) in life.items():
        if tensor not in in_dram:
            size = bytes_of(tensor, partition_of, dtypes)
            begins[first] += size
            ends[last] += size
    begun, ended = list(accumulate(begins)), list(accumulate(ends))
    alive = [begun[s] - (ended[s - 1] if s else 0) for s in range(len(kernels))]
    crossing = [0, *(begun[s - 1] - ended[s - 1] for s in range(1, len(kernels) + 1))]
    return Usage(alive, crossing, life)
