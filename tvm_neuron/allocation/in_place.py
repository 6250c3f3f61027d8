"""in_place: which tensors take the memory of one that the kernel which makes them reads last, as a sum does."""

from collections.abc import Container, Mapping, Sequence

from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor

Life = Mapping[Tensor, tuple[int, int]]  # the first and the last step at which a kernel reads or writes a tensor
_WRITTEN_ONCE = ("float32", "bfloat16", "float16")  # operations on bits write their result in several instructions


def in_place(
    kernels: Sequence[Kernel], life: Life, partition_of: Mapping[Tensor, int], dtypes: Mapping[Tensor, str],
    in_dram: Container[Tensor],
) -> dict[Tensor, Tensor]:  # fmt: skip
    """For each such tensor the one whose memory it takes.

    The kernel reads each of that one's elements for the one of the same place alone, in the instruction that writes it
    or in one before that.
    """
    found: dict[Tensor, Tensor] = {}
    for step, kernel in enumerate(kernels):
        out = kernel.out
        if kernel.by_dma or out in in_dram or life[out][0] != step or dtypes[out] not in _WRITTEN_ONCE:
            continue
        like = (out.shape, partition_of[out], dtypes[out], out.is_spread)
        for tensor in kernel.matched:
            if tensor.kind != "temp" or tensor in in_dram or life[tensor][1] != step or life[tensor][0] == step:
                continue
            if like == (tensor.shape, partition_of[tensor], dtypes[tensor], tensor.is_spread):
                found[out] = tensor
                break
    return found
