"""compared_tensors: of which tensors elements are compared with others, so that rounding one would turn the outcome."""

from collections.abc import Iterator, Sequence

from tvm_neuron.isa.functions import COMPARISONS
from tvm_neuron.schedule.expr import Apply, Expr, Num, loads
from tvm_neuron.schedule.kernel import ACCUMULATOR, Gather, Kernel, Reduction, Transposition
from tvm_neuron.schedule.tensor import Tensor

_STEPS = (*COMPARISONS, "sign")
"""What leaps where its operand, or the difference of its operands, changes ever so little."""


def compared_tensors(kernels: Sequence[Kernel]) -> set[Tensor]:
    """The run-time tensors that a kernel compares with another tensor, and those that they were moved or chosen from.

    A maximum is equal to the element that it was found in, and positions are equal to themselves: TopK and ArgMax stand
    on that, and so may the model.
    """
    found = {tensor for kernel in kernels for step in _steps(kernel.expr) for tensor in _compared(kernel, step)}
    for kernel in reversed(kernels):
        if kernel.out in found and _is_exact(kernel):
            found.update(kernel.sources())
    return found


def _steps(expr: Expr) -> Iterator[Apply]:
    if isinstance(expr, Apply):
        if expr.op in _STEPS:
            yield expr
        for arg in expr.args:
            yield from _steps(arg)


def _compared(kernel: Kernel, step: Apply) -> set[Tensor]:
    """The run-time tensors beneath a step, if these are several: with a number alone, all elements meet the same."""
    beneath = {load.tensor for load in loads(step)}
    if len(beneath) < 2:
        return set()
    exact = set(kernel.sources()) if ACCUMULATOR in beneath and _is_exact_root(kernel) else set()
    return exact | {tensor for tensor in beneath if tensor.value is None and tensor is not ACCUMULATOR}


def _is_exact(kernel: Kernel) -> bool:
    """Whether each element that it makes is one of those that it reads, or its negative."""
    expr = kernel.expr
    is_negative = isinstance(expr, Apply) and expr.op == "multiply" and expr.args[1] == Num(-1.0)
    return (is_negative or not isinstance(expr, Apply)) and (kernel.root is None or _is_exact_root(kernel))


def _is_exact_root(kernel: Kernel) -> bool:
    root = kernel.root
    return isinstance(root, Transposition | Gather) or (isinstance(root, Reduction) and root.combine in ("max", "min"))
