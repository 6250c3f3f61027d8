"""one_thread: keeps NumPy's BLAS from spreading the model's many small products over threads of its own.

Measured on two cores with ResNet-50: no gain from a second thread, twice the processor time, and several times the
wall time as soon as anything else runs, because BLAS threads spin while they wait for each other. So each call stays on
its thread, and `native` shares out the sums.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from tvm_neuron.isa.blas import openblas

_NAMES = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")


@cache
def _controls() -> tuple[Any, Any] | None:
    """(get, set) of the number of threads of the OpenBLAS that NumPy brought along; None with any other BLAS."""
    library = openblas()
    for name in _NAMES:
        if hasattr(library, name.format("get")):
            return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, NumPy's BLAS uses one thread, where that can be set."""
    controls = _controls()
    if controls is None:
        yield
        return
    get, put = controls
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)
