"""defer: kernels right before the first that needs what they make."""

from collections.abc import Container, Sequence

from tvm_neuron.codegen.overlap.part import Part, find_dependences
from tvm_neuron.isa.engines import COMPUTE
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tensor import Tensor


def defer(kernels: Sequence[Kernel], late: Container[Kernel], partition_of: dict[Tensor, int]) -> list[Kernel]:
    """The kernels in their order, but `late` ones when another one needs them or overwrites what they read."""
    parts = [Part(kernel, number, 0, dict.fromkeys(COMPUTE, 0)) for number, kernel in enumerate(kernels)]
    find_dependences(parts, partition_of)
    done: dict[Part, None] = {}
    pending = [part for part in reversed(parts) if part.kernel not in late]
    while pending:
        part = pending[-1]
        missing = [other for other in part.after if other not in done]
        pending += sorted(missing, key=lambda other: -other.number)
        if not missing:
            done[pending.pop()] = None
    return [part.kernel for part in done]
