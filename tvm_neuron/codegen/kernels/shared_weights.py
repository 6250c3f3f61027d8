"""share_weights: kernels whose weights are the same memory have the same array, by which what is loaded is known."""

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from tvm_neuron.schedule.kernel import Contraction, Kernel


def share_weights(kernels: list[Kernel]) -> list[Kernel]:
    """The kernels; layers that share their weights load them once, if there is room for them to stay."""
    known: dict[tuple[Any, ...], NDArray[Any]] = {}
    found: list[Kernel] = []
    for kernel in kernels:
        root = kernel.root
        if isinstance(root, Contraction):
            weights = root.weights
            place = weights.__array_interface__["data"], weights.dtype, weights.shape, weights.strides
            kernel = replace(kernel, root=replace(root, weights=known.setdefault(place, weights)))
        found.append(kernel)
    return found
