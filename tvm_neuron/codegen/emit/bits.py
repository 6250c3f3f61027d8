"""Bits: operations on bits, for which operands that are no 32-bit integers are brought into temporaries."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from tvm_neuron.codegen.emit.targets import Emits, Operand, Temporaries, spread
from tvm_neuron.isa import Memset, TensorCopy, TensorScalarBits, TensorTensorBits, Tile
from tvm_neuron.isa.functions import BITWISE
from tvm_neuron.isa.tile import Dims
from tvm_neuron.schedule.expr import Apply, Expr, Load, Num


@dataclass
class Bits:
    """What `Arithmetic` leaves to it; `operand` and `compute` are its own methods for values of other dtypes."""

    builder: Emits
    scratch: Temporaries
    shape: tuple[int, Dims]  # partitions and contiguous dims of a whole tile
    operand: Callable[[Expr], Operand]
    compute: Callable[[Expr, Tile], None]
    made: dict[Expr, Tile]  # numbers, and what was converted to int32: each once for all that share it

    def store(self, op: str, left: Expr, right: Expr, result: Tile) -> None:
        """`left op right` into `result`; what is computed in float32 on the way is a whole number that it holds."""
        is_single = result.free_elems == 1
        target = result if result.dtype == "int32" else self._temporary(is_single)
        source = spread(self._tile(left, is_single), target.dims)
        if isinstance(right, Num):
            self.builder.emit(TensorScalarBits(result=target, source=source, scalar=_bits(right), op=op))
        else:
            other = spread(self._tile(right, is_single), target.dims)
            self.builder.emit(TensorTensorBits(result=target, left=source, right=other, op=op))
        if target is not result:
            self.builder.emit(TensorCopy(result=result, source=target))

    def is_wide(self, expr: Expr) -> bool:
        """Whether float32 may not hold a whole number."""
        match expr:
            case Num(value):
                return abs(value) > 2**24
            case Load():
                found = self.operand(expr)
                return isinstance(found, Tile) and found.dtype == "int32"
            case Apply("select", (_, left, right)):
                return self.is_wide(left) or self.is_wide(right)
            case Apply(op, _):
                return op in BITWISE
            case _:
                return False

    def whole(self, expr: Expr, dims: Dims) -> Tile:
        """A value as int32 with an element for each of the result's."""
        return spread(self._tile(expr, prod(count for _, count in dims) == 1), dims)

    def _tile(self, expr: Expr, is_single: bool) -> Tile:
        if isinstance(expr, Load) or (isinstance(expr, Apply) and expr.op in BITWISE):
            found = self.operand(expr)
            if isinstance(found, Tile) and found.dtype == "int32":
                return found
        if expr not in self.made:
            tile = self._temporary(is_single or isinstance(expr, Num))
            if isinstance(expr, Num):  # a memset's own value is a float32
                self.builder.emit(Memset(result=tile, value=0.0))
                self.builder.emit(TensorScalarBits(result=tile, source=tile, scalar=_bits(expr), op="bitwise_or"))
            else:
                self.compute(expr, tile)
            self.made[expr] = tile
        return self.made[expr]

    def _temporary(self, is_single: bool) -> Tile:
        partitions, dims = self.shape
        return replace(self.scratch.tile(partitions, ((1, 1),) if is_single else dims), dtype="int32")


def _bits(number: Num) -> int:
    return int(number.value) & 0xFFFFFFFF
