"""scale_ones: sums that are only multiplied by a number are sums of elements times that number, instead of ones.

Nothing is then left to be done on the way out of PSUM, and what reads the mean of a row may read it there.
"""

from dataclasses import replace

from tvm_neuron.schedule.expr import Apply, Num
from tvm_neuron.schedule.kernel import ROOT, Kernel, Operand, Product
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import writers_of


def scale_ones(kernels: list[Kernel], partition_of: dict[Tensor, int]) -> list[Kernel]:
    """The kernels with ones of their own for each such number."""
    writers = writers_of(kernels)
    scaled: dict[tuple[Tensor, float], Tensor] = {}
    found: list[Kernel] = []
    for kernel in kernels:
        factor = _factor(kernel)
        if factor is None or not isinstance(kernel.root, Product):
            found.append(kernel)
            continue
        ones = kernel.root.stationary
        if (ones.tensor, factor) not in scaled:
            scaled[ones.tensor, factor] = other = replace(ones.tensor)
            partition_of[other] = partition_of[ones.tensor]
            found += [replace(fill, out=other, expr=Num(factor)) for fill in writers[ones.tensor]]
        stationary = Operand(scaled[ones.tensor, factor], ones.maps)
        found.append(replace(kernel, expr=ROOT, root=replace(kernel.root, stationary=stationary)))
    return found


def _factor(kernel: Kernel) -> float | None:
    """By what number it multiplies such a sum; None if that is not all that it does."""
    match kernel.root, kernel.expr:
        case Product(is_sum=True), Apply("multiply", (left, Num(value))) if left is ROOT:
            return value
    return None
