"""Tile: the view that kernels hold, with Python's operators."""

from collections.abc import Sequence
from typing import Any

from tvm_neuron.nki import calls
from tvm_neuron.nki.dtypes import dtype_name
from tvm_neuron.nki.emission import Result
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import current
from tvm_neuron.nki.view import View


def tile_of(result: Result, mask: Any = None, dtype: Any = None) -> View:
    """The tile that a call gives, in `dtype` if one is asked for."""
    if dtype is not None:
        result = Result(result.shape, dtype_name(dtype), result.memory, result.write, result.add)
    return current().hold(result, mask)


class Tile(View):
    """A window into a tensor; arithmetic gives new tiles, assignment writes."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self[key]
        if isinstance(value, View):
            if value.tensor is target.tensor and (value.start, value.axes) == (target.start, target.axes):
                return  # `t[i] += x` has written there
            if current().assign(target, value):
                return
            current().do(
                calls.tensor_copy(value.widened(target.shape) if value.elems < target.elems else value), target
            )
            return
        current().do(calls.memset(target.shape, value, target.tensor.dtype), target)

    def __iadd__(self, other: Any) -> "Tile":
        if not (isinstance(other, View) and current().accumulate(self, other)):
            current().do(calls.binary("add", self, other), self)
        return self

    def broadcast_to(self, *shape: Any, **words: Any) -> View:
        """The same values for every partition and along axes of size 1."""
        given: Sequence[int] = words.get("shape", shape[0] if len(shape) == 1 else shape)
        return calls.broadcast_to(self, tuple(int(count) for count in given))

    def astype(self, dtype: Any) -> View:
        """A copy in another dtype."""
        return tile_of(calls.tensor_copy(self), dtype=dtype)

    def view(self, dtype: Any) -> View:
        """Itself; the bytes of a tensor have one dtype.

        Raises:
            KernelError: it is asked for another one.
        """
        if dtype_name(dtype) != self.tensor.dtype:
            raise wrong(f"{self} is {self.tensor.dtype}; its bytes can't be taken as {dtype_name(dtype)}: copy it")
        return self

    def __add__(self, other: Any) -> View:
        return tile_of(calls.binary("add", self, other))

    def __sub__(self, other: Any) -> View:
        return tile_of(calls.binary("subtract", self, other))

    def __rsub__(self, other: Any) -> View:
        return tile_of(calls.binary("subtract", other, self))

    def __mul__(self, other: Any) -> View:
        return tile_of(calls.binary("multiply", self, other))

    def __truediv__(self, other: Any) -> View:
        return tile_of(calls.binary("divide", self, other))

    def __rtruediv__(self, other: Any) -> View:
        return tile_of(calls.binary("divide", other, self))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> View:
        return tile_of(calls.binary("multiply", self, -1.0))

    def __lt__(self, other: Any) -> View:
        return tile_of(calls.binary("less", self, other))

    def __le__(self, other: Any) -> View:
        return tile_of(calls.binary("less_equal", self, other))

    def __gt__(self, other: Any) -> View:
        return tile_of(calls.binary("greater", self, other))

    def __ge__(self, other: Any) -> View:
        return tile_of(calls.binary("greater_equal", self, other))
