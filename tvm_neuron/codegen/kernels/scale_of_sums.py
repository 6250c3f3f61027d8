"""scale_of_sums: a mean that only the PE array reads is the sum; its weights are divided instead, at compile time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tvm_neuron.schedule.expr import Apply, Num
from tvm_neuron.schedule.kernel import ROOT, Contraction, Kernel, Reduction
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import readers_of, writers_of


def scale_of_sums(kernels: list[Kernel]) -> list[Kernel]:
    """The kernels; a reduction's result is multiplied by a number in the weights of all contractions that read it.

    Not in float16, whose range a sum may leave though the mean does not.
    """
    writers, readers = writers_of(kernels), readers_of(kernels)
    scales: dict[Tensor, float] = {}
    for kernel in kernels:
        scale = _scale(kernel)
        if (
            scale is not None
            and len(writers[kernel.out]) == 1
            and _are_contractions(readers.get(kernel.out, []), kernel.out)
        ):
            scales[kernel.out] = scale
    return [_changed(kernel, scales) for kernel in kernels]


def _scale(kernel: Kernel) -> float | None:
    """The number that a reduction's result is multiplied by on its way to other kernels, if nothing else is done."""
    match kernel.expr:
        case Apply("multiply", (root, Num(number))) if root is ROOT and isinstance(kernel.root, Reduction):
            return number if kernel.out.kind == "temp" and 0 < abs(number) <= 1 else None
    return None


def _are_contractions(readers: Sequence[Kernel], tensor: Tensor) -> bool:
    return bool(readers) and all(
        isinstance(reader.root, Contraction)
        and reader.root.data is tensor
        and reader.root.dtype != "float16"
        and all(load.tensor is not tensor for load in reader.operand_loads())
        for reader in readers
    )


def _changed(kernel: Kernel, scales: Mapping[Tensor, float]) -> Kernel:
    root = kernel.root
    if kernel.out in scales:
        return replace(kernel, expr=ROOT)
    if isinstance(root, Contraction) and root.data in scales:
        weights = root.weights * np.float32(scales[root.data])
        return replace(kernel, root=replace(root, weights=weights))
    return kernel
