"""again: a contraction of the same places in memory as before makes the same calls of the library, in one go."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_neuron.isa.scratch import generation
from tvm_neuron.native import Tape, native, recording

Array = NDArray[Any]
_MOST = 4096  # contractions that a thread keeps
_RECORDED = threading.local()


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The calls, with `scratch` of this generation, the shape of the sums, and where the result lies in them."""

    tape: Tape
    generation: int
    sums: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def again(make: Callable[..., tuple[Array, Array]], operands: tuple[Array, ...], *options: Any) -> Array:
    """The second of what make(*operands) gives: sums in float32, and a view of them from the first one on.

    What `make` does follows from where the operands lie, their shapes, dtypes and `options`, never from their values.
    """
    if native() is None:
        return make(*operands)[1]
    found: dict[Any, _Recorded] = _RECORDED.__dict__.setdefault("found", {})
    key = (*((x.ctypes.data, x.dtype, x.shape, x.strides) for x in operands), *options)
    known = found.get(key)
    if known is not None and known.generation == generation():
        sums = np.empty(known.sums, np.float32)
        known.tape.replay(sums.ctypes.data)
        return np.ndarray(known.shape, np.float32, sums, 0, known.strides)
    before = generation()
    with recording() as tape:
        sums, result = make(*operands)
    if tape.is_whole and generation() == before:  # else its first calls are about rooms that are gone
        if len(found) == _MOST:
            found.clear()
        found[key] = _Recorded(tape, before, sums.shape, result.shape, result.strides)
    return result
