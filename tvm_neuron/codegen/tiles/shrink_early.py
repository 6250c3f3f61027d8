"""shrink_early: what makes less of a tensor that waits for it runs as soon as it can, so that less waits.

A detector's last layers read maps of its first ones through a layer that halves their channels.
"""

from collections.abc import Mapping, Sequence

from tvm_neuron.allocation.layouts import bytes_on_chip
from tvm_neuron.allocation.regions import box, whole
from tvm_neuron.codegen.tiles.usage import NEAR, steps_of
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor


def shrink_early(
    kernels: Sequence[Kernel], partition_of: Mapping[Tensor, int], dtypes: Mapping[Tensor, str]
) -> list[Kernel]:
    """The kernels; the last that reads a tensor, long after all others and nothing else, follows these.

    It keeps its place if what it makes takes no less memory, or if what it writes into is touched in between.
    """
    touched = steps_of(kernels)
    after: dict[int, list[Kernel]] = {}
    moved: set[Kernel] = set()
    for number, kernel in enumerate(kernels):
        sources = [tensor for tensor in dict.fromkeys(kernel.sources()) if tensor.value is None]
        if kernel.by_dma or [kernel.out.kind, *(tensor.kind for tensor in sources)] != ["temp", "temp"]:
            continue
        (source,) = sources
        *_, before, last = [number, *touched[source]]
        if last != number or number - before <= NEAR or any(before <= step < number for step in touched[kernel.out]):
            continue
        made = bytes_on_chip(dtypes[kernel.out], partition_of[kernel.out], box(kernel.out_maps, whole(kernel))[1])
        if made < bytes_on_chip(dtypes[source], partition_of[source], source.shape):
            after.setdefault(before, []).append(kernel)
            moved.add(kernel)
    found: list[Kernel] = []
    for number, kernel in enumerate(kernels):
        found += [] if kernel in moved else [kernel]
        found += after.get(number, [])
    return found
