"""turn_inputs: inputs come transposed from device memory, where the DMA does that at a rate, not through the array."""

from dataclasses import replace

from tvm_neuron.isa.dtypes import device_dtype, size_bytes
from tvm_neuron.schedule.expr import Load
from tvm_neuron.schedule.kernel import Kernel, Transposition
from tvm_neuron.schedule.uses import writers_of

_AT_A_RATE = (2, 4)  # bytes of an element


def turn_inputs(kernels: list[Kernel]) -> list[Kernel]:
    """The kernels with transpositions of inputs as moves of the DMA, which keep the input's dtype."""
    writers = writers_of(kernels)
    return [_turned(kernel) if is_of_input(kernel) and len(writers[kernel.out]) == 1 else kernel for kernel in kernels]


def is_of_input(kernel: Kernel) -> bool:
    """Whether it transposes an input on the PE array and keeps the result in SBUF."""
    if not isinstance(kernel.root, Transposition) or kernel.out.kind != "temp":
        return False
    source = kernel.root.source.tensor
    return source.kind == "input" and size_bytes(device_dtype(source.dtype)) in _AT_A_RATE


def _turned(kernel: Kernel) -> Kernel:
    assert isinstance(kernel.root, Transposition)
    source = kernel.root.source
    load = Load(source.tensor, tuple(part.expr() for part in source.maps))
    return replace(kernel, root=None, expr=load, by_dma=True, is_turned=True)
