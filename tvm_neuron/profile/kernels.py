"""KernelUse: a kernel written by hand in a model, beside what the compiler would have had in its place."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tvm_neuron.neff import Neff
from tvm_neuron.profile.measure import Measurement

KERNEL_OPTION, COMPILED_OPTION = "kernel", "compiled_us"
"""What a NEFF's options say of it: the kernel's name, and the compiler's time."""


@dataclass(frozen=True, slots=True)
class KernelUse:
    """Both as programs of their own; `compiled_us` is None if nobody told what stands in the kernel's place."""

    subgraph: str
    kernel: str
    latency_us: float
    compiled_us: float | None


def kernels_in(neffs: Iterable[Neff], measured: Iterable[Measurement]) -> Iterator[KernelUse]:
    """Those of a model, in their order."""
    for neff, part in zip(neffs, measured, strict=True):
        if KERNEL_OPTION in neff.options:
            name, compiled = str(neff.options[KERNEL_OPTION]), neff.options.get(COMPILED_OPTION)
            yield KernelUse(neff.name, name, part.latency_us, None if compiled is None else float(compiled))
