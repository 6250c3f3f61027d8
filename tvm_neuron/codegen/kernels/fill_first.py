"""fill_first: borders are filled before what they surround is computed, so that readers needn't wait for them as well.

An engine that fills a border takes its instructions in order: behind the last tile of what is inside, the fill would
hold up all who read the first ones.
"""

from tvm_neuron.allocation.regions import box, overlaps, whole
from tvm_neuron.codegen.kernels.row_axes import is_fill
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor


def fill_first(kernels: list[Kernel]) -> list[Kernel]:
    """The kernels; each that fills a part of a tensor with a number is before all others that write the tensor."""
    users: dict[Tensor, list[int]] = {}
    fills: dict[int, list[Kernel]] = {}
    moved: set[Kernel] = set()
    for number, kernel in enumerate(kernels):
        others = users.get(kernel.out, [])
        if is_fill(kernel) and others and not any(_is_in_order(kernels[other], kernel) for other in others):
            fills.setdefault(others[0], []).append(kernel)
            moved.add(kernel)
        for tensor in kernel.tensors:
            users.setdefault(tensor, []).append(number)
    found: list[Kernel] = []
    for number, kernel in enumerate(kernels):
        found += fills.get(number, [])
        found += [] if kernel in moved else [kernel]
    return found


def _is_in_order(first: Kernel, fill: Kernel) -> bool:
    """Whether it matters which one is first."""
    here, there = (box(kernel.out_maps, whole(kernel)) for kernel in (first, fill))
    return fill.out in first.sources() or overlaps(here, there)
