"""in_place: which tensors take the memory of one that the kernel which makes them reads last, as a sum does."""

from collections.abc import Container, Mapping, Sequence

from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor

Life = Mapping[Tensor, tuple[int, int]]  # the first and the last step at which a kernel reads or writes a tensor
_WRITTEN_ONCE = ("float32", "bfloat16", "float16")  # operations on bits write their result in several instructions


def may_share(
    kernels: Sequence[Kernel], life: Life, partition_of: Mapping[Tensor, int], dtypes: Mapping[Tensor, str]
) -> dict[Tensor, list[Tensor]]:
    """For each such tensor those whose memory it may take if both are in SBUF, the best first.

    The kernel reads each of that one's elements for the one of the same place alone, in the instruction that writes it
    or in one before that.
    """
    found: dict[Tensor, list[Tensor]] = {}
    for step, kernel in enumerate(kernels):
        out = kernel.out
        if kernel.by_dma or life[out][0] != step or dtypes[out] not in _WRITTEN_ONCE:
            continue
        like = (out.shape, partition_of[out], dtypes[out], out.is_spread)
        for tensor in kernel.matched:
            if tensor.kind != "temp" or life[tensor][1] != step or life[tensor][0] == step:
                continue
            if like == (tensor.shape, partition_of[tensor], dtypes[tensor], tensor.is_spread):
                found.setdefault(out, []).append(tensor)
    return found


def in_place(may_share: Mapping[Tensor, Sequence[Tensor]], in_dram: Container[Tensor]) -> dict[Tensor, Tensor]:
    """For each tensor that shares memory the one whose memory it takes."""
    found: dict[Tensor, Tensor] = {}
    for out, every in may_share.items():
        on_chip = [tensor for tensor in every if tensor not in in_dram]
        if on_chip and out not in in_dram:
            found[out] = on_chip[0]
    return found
