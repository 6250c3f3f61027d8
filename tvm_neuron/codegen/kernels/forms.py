"""forms: kernels as they are, and with those that compute an image also computing padding around it."""

from collections.abc import Iterator, Mapping, Sequence

from tvm_neuron.codegen.kernels.copy_shifted import copy_shifted
from tvm_neuron.codegen.kernels.write_padding import write_padding
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor


def forms(
    kernels: list[Kernel], images: Sequence[Tensor], partition_of: Mapping[Tensor, int], device: Device
) -> Iterator[tuple[list[Kernel], dict[Tensor, int]]]:
    """One or two lists of kernels, each with the partition dimension of all tensors."""
    dims = {**partition_of}
    yield kernels, dims
    changed = kernels
    for image in images:
        changed = write_padding(changed, image) or copy_shifted(changed, image, dims, device) or changed
    if changed is not kernels:
        yield changed, {**dict.fromkeys((kernel.out for kernel in changed), 1), **dims}
