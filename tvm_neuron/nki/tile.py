"""Tile: the view that kernels hold, with Python's operators."""

from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

from tvm_neuron.nki import calls
from tvm_neuron.nki.access import Chosen, by_pattern, chosen, retyped, whole
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

    def __getitem__(self, key: Any) -> Any:
        """The window that a key chooses; a tile among the indices says where along its axis."""
        keys = key if isinstance(key, tuple) else (key,)
        at = next((at for at, each in enumerate(keys) if isinstance(each, View)), None)
        if at is None:
            return super().__getitem__(key)
        return chosen(self, at, super().__getitem__((*keys[:at], 0, *keys[at + 1 :])), keys[at])

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

    def ap(
        self, pattern: Sequence[Sequence[int]], offset: int = 0, dtype: Any = None, scalar_offset: Any = None,
        vector_offset: Any = None, indirect_dim: int = 0,
    ) -> View | Chosen:  # fmt: skip
        """The elements that [step, count] pairs choose, counted through all of the tensor, from `offset` on.

        On chip a partition is as many elements as the tensor has in each, and the first pair counts partitions. An
        offset in a tile moves them along the axis `indirect_dim`: [1, 1] all of them, a vector [P, 1] each of the first
        pair, whose step then doesn't count.

        Raises:
            KernelError: they lie outside, or a later pair leaves the partition.
        """
        offsets = scalar_offset if vector_offset is None else vector_offset
        if offsets is not None:
            steps = [(0 if vector_offset is not None and not at else by, n) for at, (by, n) in enumerate(pattern)]
            return chosen(self, indirect_dim, by_pattern(self, steps, int(offset)), offsets)
        base = self if dtype is None else retyped(whole(self), dtype_name(dtype))
        return by_pattern(base, [(int(step), int(count)) for step, count in pattern], int(offset))

    def astype(self, dtype: Any) -> View:
        """A copy in another dtype."""
        return tile_of(calls.tensor_copy(self), dtype=dtype)

    def view(self, dtype: Any) -> View:
        """The same bytes as elements of another dtype.

        Raises:
            KernelError: they don't lie together, or in device memory.
        """
        return retyped(self, dtype_name(dtype))

    def __bool__(self) -> bool:
        """That there is such a tensor.

        Raises:
            KernelError: it is on chip: what it holds is not known when the kernel is traced.
        """
        if self.tensor.memory != "hbm":
            raise wrong(f"{self} as a condition: what it holds is known on the core only; use nl.where or a mask")
        return True

    def __eq__(self, other: object) -> Any:
        """1 where elements are equal; of tensors in device memory, and beside other things, whether it is the same."""
        return self._compared("equal", other)

    def __ne__(self, other: object) -> Any:
        """The opposite."""
        return self._compared("not_equal", other)

    __hash__ = View.__hash__

    def _compared(self, name: str, other: object) -> Any:
        if self.tensor.memory == "hbm" or not isinstance(other, View | Number):
            return NotImplemented
        return tile_of(calls.binary(name, self, other))

    def __neg__(self) -> View:
        return tile_of(calls.binary("multiply", self, -1))

    def __abs__(self) -> View:
        return tile_of(calls.unary("abs", self))

    def __invert__(self) -> View:
        return tile_of(calls.inverted(self))


def _operator(name: str, is_reversed: bool) -> Callable[[Tile, Any], View]:
    def method(tile: Tile, other: Any) -> View:
        return tile_of(calls.binary(name, other, tile) if is_reversed else calls.binary(name, tile, other))

    return method


# Python's names of the operators of two operands, without `__`.
_REVERSIBLE = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "mod": "mod", "pow": "power",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
for _short, _name in (_REVERSIBLE | _COMPARISONS).items():
    setattr(Tile, f"__{_short}__", _operator(_name, is_reversed=False))
for _short, _name in _REVERSIBLE.items():
    setattr(Tile, f"__r{_short}__", _operator(_name, is_reversed=True))
