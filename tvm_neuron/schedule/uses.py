"""writers_of, readers_of, users_of: by tensor, the kernels that write it, read it, or do either; in their order."""

from collections.abc import Callable, Iterable

from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor


def writers_of(kernels: Iterable[Kernel]) -> dict[Tensor, list[Kernel]]:
    """The kernels that write all of a tensor or a part of it; tensors that none writes are not there."""
    return _by_tensor(kernels, lambda kernel: (kernel.out,))


def readers_of(kernels: Iterable[Kernel]) -> dict[Tensor, list[Kernel]]:
    """The kernels that read each tensor, each kernel once; tensors that none reads are not there."""
    return _by_tensor(kernels, lambda kernel: dict.fromkeys(kernel.sources()))


def users_of(kernels: Iterable[Kernel]) -> dict[Tensor, list[Kernel]]:
    """The kernels that write or read each tensor, each kernel once."""
    return _by_tensor(kernels, lambda kernel: kernel.tensors)


def _by_tensor(kernels: Iterable[Kernel], of: Callable[[Kernel], Iterable[Tensor]]) -> dict[Tensor, list[Kernel]]:
    found: dict[Tensor, list[Kernel]] = {}
    for kernel in kernels:
        for tensor in of(kernel):
            found.setdefault(tensor, []).append(kernel)
    return found
