"""Random numbers of models that draw them in each run; one generator for all libraries of the process."""

from threading import Lock

import numpy as np
import tvm
import tvm_ffi

_generator = np.random.default_rng()
_drawing = Lock()


def seed(number: int | None = None) -> None:
    """Begin the sequence of random numbers again: from a seed the same runs give the same, without one others.

    Threads that run at once share the sequence, so only those of one thread are told apart by the seed.
    """
    global _generator
    with _drawing:
        _generator = np.random.default_rng(number)


def drawn(kind: str, dtype: str, shape: tvm_ffi.Shape) -> tvm.runtime.Tensor:
    """Numbers from 0 to 1 without 1 (`uniform`), or with mean 0 and deviation 1 (`normal`); float32 or float64."""
    with _drawing:
        draw = _generator.random if kind == "uniform" else _generator.standard_normal
        found = draw(tuple(shape), dtype=np.dtype(dtype))
    return tvm.runtime.tensor(np.asarray(found, dtype))
