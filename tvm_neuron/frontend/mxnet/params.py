"""parse_params: the weights in the bytes of a .params file."""

from struct import Struct, error
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import ModelError

Weights = dict[str, NDArray[Any]]

_LIST_MAGIC = 0x112
_WIDE_SHAPES = (0xF993FAC8, 0xF993FAC9, 0xF993FACA)  # arrays whose sizes have 64 bits; before, 32 and no magic number
_HAS_STORAGE = _WIDE_SHAPES[1:]
_NUMPY_SHAPES = _WIDE_SHAPES[2]  # of which () is the shape of a number, not of nothing
_DENSE = 0
_DTYPES = {
    0: np.float32, 1: np.float64, 2: np.float16, 3: np.uint8, 4: np.int32, 5: np.int8, 6: np.int64, 7: np.bool_,
    12: ml_dtypes.bfloat16,
}  # fmt: skip
_MOST_DIMENSIONS = 32


def parse_params(content: bytes, where: str) -> Weights:
    """The arrays by name; `arg:` and `aux:`, which say what the trainer does with them, are left out.

    Raises:
        ModelError: it is no such file, cut off, or an array is sparse or of an unknown dtype.
    """
    reader = _Reader(content, where)
    if reader.number("<Q") != _LIST_MAGIC:
        raise ModelError(f"{where} is no .params file of MXNet: it does not begin with {_LIST_MAGIC:#x}")
    reader.number("<Q")
    arrays = [reader.array() for _ in range(reader.count())]
    names = [reader.text() for _ in range(reader.count())]
    if len(names) != len(arrays):
        raise ModelError(f"{where} has {len(arrays)} arrays but {len(names)} names: weights of a model all have one")
    return {name.removeprefix("arg:").removeprefix("aux:"): array for name, array in zip(names, arrays, strict=True)}


class _Reader:
    """Reads one thing after the other, never past the end."""

    def __init__(self, content: bytes, where: str) -> None:
        self._content, self._where, self._at = content, where, 0

    def number(self, form: str) -> int:
        """The next, in the form of `struct`."""
        whole = Struct(form)
        try:
            (value,) = whole.unpack_from(self._content, self._at)
        except error as cause:
            raise self._cut_off() from cause
        self._at += whole.size
        return int(value)

    def count(self) -> int:
        """How many of something follow, each of one byte at least."""
        found = self.number("<Q")
        if found > len(self._content) - self._at:
            raise self._cut_off()
        return found

    def text(self) -> str:
        """A name."""
        return self._take(self.count()).decode(errors="replace")

    def array(self) -> NDArray[Any]:
        """An array; of no elements where nothing was stored."""
        magic = self.number("<I")
        if magic in _HAS_STORAGE and self.number("<i") != _DENSE:
            raise ModelError(f"{self._where} holds a sparse array: store it dense, array.tostype('default')")
        is_wide = magic in _WIDE_SHAPES
        rank = self.number("<i") if is_wide else magic
        if rank > _MOST_DIMENSIONS:
            raise ModelError(f"{self._where} holds an array of {rank} dimensions, at byte {self._at}: it is damaged")
        shape = tuple(self.number("<q" if is_wide else "<I") for _ in range(rank))
        if rank < 0 or (rank == 0 and magic != _NUMPY_SHAPES):
            return np.zeros(0, np.float32)
        self.number("<q")  # the kind and number of the device that it was on
        kind = self.number("<i")
        if kind not in _DTYPES:
            raise ModelError(f"{self._where} holds an array of dtype number {kind}; known are {sorted(_DTYPES)}")
        dtype = np.dtype(_DTYPES[kind])
        elements = 1
        for size in shape:
            elements *= size
        if min(shape, default=1) < 0:
            raise self._cut_off()
        return np.frombuffer(self._take(elements * dtype.itemsize), dtype).reshape(shape)

    def _take(self, length: int) -> bytes:
        if length > len(self._content) - self._at:
            raise self._cut_off()
        self._at += length
        return self._content[self._at - length : self._at]

    def _cut_off(self) -> ModelError:
        return ModelError(f"{self._where} ends, or is damaged, at byte {self._at} of {len(self._content)}")
