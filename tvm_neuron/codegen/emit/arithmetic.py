"""arithmetic: an expression on one tile as ACT and POOL instructions."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tvm_neuron.codegen.emit.bits import Bits
from tvm_neuron.codegen.emit.targets import Emits, Operand, Temporaries, spread
from tvm_neuron.errors import InternalError
from tvm_neuron.isa import (
    Activation,
    ActTensorScalar,
    Memset,
    ScalarTensorTensor,
    Select,
    TensorCopy,
    TensorScalar,
    TensorTensor,
    Tile,
)
from tvm_neuron.isa.functions import ACTIVATION, ALU, BITWISE
from tvm_neuron.isa.tile import Dims
from tvm_neuron.schedule.expr import Apply, Expr, Load, Num

_FEW = 160
"""Elements up to which one more instruction of ACT takes less time than one of POOL: most of that is its overhead."""
_COMMUTES = ("add", "multiply", "max", "min", "is_equal", "not_equal")


@dataclass
class Arithmetic:
    """Emits the instructions of an expression; `resolve` gives the tile of a load ([P, 1] if it has no free axis)."""

    builder: Emits
    scratch: Temporaries
    shape: tuple[int, tuple[tuple[int, int], ...]]  # partitions and contiguous dims of a whole tile
    resolve: Callable[[Load], Operand]
    _made: dict[Expr, Tile] = field(default_factory=dict)  # what occurs again is computed once
    _converted: dict[Expr, Tile] = field(default_factory=dict)

    @property
    def _bits(self) -> Bits:
        """Not kept, since it refers back: the weights that `resolve` knows would stay until Python looks for cycles."""
        return Bits(self.builder, self.scratch, self.shape, self.operand, self.store, self._converted)

    def store(self, expr: Expr, result: Tile) -> None:
        """Computes the expression into `result`."""
        match expr:
            case Num(value):
                self.builder.emit(Memset(result=result, value=float(value)))
            case Load():
                source = spread(self._tile(expr), result.dims)
                if source.space == "sbuf":  # ACT is to be free for what the PE array makes
                    self.builder.emit(TensorCopy(result=result, source=source))
                else:
                    self._affine("copy", expr, result)
            case Apply("not", (inner,)):
                self.store(Apply("is_equal", (inner, Num(0.0))), result)
            case Apply("min", (Apply("max", (inner, low)), high)) if self._is_scalar(low) and self._is_scalar(high):
                source = spread(self._tile(inner), result.dims)
                instruction = ActTensorScalar if source.space == "psum" else TensorScalar  # as with loads
                self.builder.emit(
                    instruction(
                        result=result, source=source, scalar0=self.operand(low), scalar1=self.operand(high), op0="max",
                        op1="min", reverse=0,
                    )
                )  # fmt: skip
            case Apply("multiply", (left, right)) if left == right:
                self._affine("square", left, result)
            case Apply("max", (inner, Num(0.0))) | Apply("max", (Num(0.0), inner)):
                self._affine("relu", inner, result)
            case Apply(op, (inner,)) if op in ACTIVATION:
                self._affine(op, inner, result)
            case Apply(op1, (Apply(op0, (inner, low)), high)) if self._is_two_steps(op0, op1, low, high):
                self.builder.emit(
                    TensorScalar(
                        result=result, source=spread(self._tile(inner), result.dims), scalar0=self.operand(low),
                        scalar1=self.operand(high), op0=op0, op1=op1, reverse=0,
                    )
                )  # fmt: skip
            case Apply("multiply", (Apply("multiply", (left, second)) as inner, right)) if (
                inner not in self._made and self._is_scalar(right) and not any(map(self._is_scalar, (left, second)))
            ):  # all at once, as of a norm: POOL has the product to do anyway
                self._binary("multiply", Apply("multiply", (left, right)), second, result)
            case Apply("add" | "multiply", (_, right)) if self._is_scalar(right):
                self._affine("copy", expr, result)
            case Apply(op, (left, right)) if op in ALU:
                self._binary(op, left, right, result)
            case Apply(op, (left, right)) if op in BITWISE:
                self._bits.store(op, left, right, result)
            case Apply("and" | "or" as op, (left, right)):
                self._binary("multiply" if op == "and" else "max", left, right, result)
            case Apply("select", (condition, on_true, on_false)):
                is_wide = result.dtype == "int32" and any(map(self._bits.is_wide, (on_true, on_false)))
                whole = self._bits.whole if is_wide else self._whole
                predicate = self._whole(condition, result.dims)
                chosen, other = whole(on_true, result.dims), whole(on_false, result.dims)
                self.builder.emit(Select(result=result, predicate=predicate, on_true=chosen, on_false=other))
            case Apply(op, _):
                raise InternalError(f"no engine of a NeuronCore computes '{op}'")
            case _:
                raise InternalError(f"{expr} is no value of a tile")

    def _is_two_steps(self, op0: str, op1: str, low: Expr, high: Expr) -> bool:
        """Whether POOL does both at once; ACT takes a scale and then a shift."""
        both = op0 in ALU and op1 in ALU and (op0, op1) != ("multiply", "add")
        return both and self._is_scalar(low) and self._is_scalar(high)

    def operand(self, expr: Expr) -> Operand:
        """Where the value of the expression lies: an immediate, a load's own tile, or a new temporary."""
        if isinstance(expr, Num):
            return float(expr.value)
        if isinstance(expr, Load):
            return self.resolve(expr)
        if expr not in self._made:
            small = self._is_scalar(expr)
            partitions, dims = self.shape
            result = self.scratch.tile(partitions, ((1, 1),) if small else dims)
            if isinstance(expr, Apply) and expr.op in BITWISE:
                result = replace(result, dtype="int32")
            self.store(expr, result)
            self._made[expr] = result
        return self._made[expr]

    def _tile(self, expr: Expr) -> Tile:
        """The tile with the value of the expression; a number is written into one."""
        found = self.operand(expr)
        if isinstance(found, Tile):
            return found
        constant = self.scratch.tile(self.shape[0], ((1, 1),))
        self.builder.emit(Memset(result=constant, value=found))
        return constant

    def _whole(self, expr: Expr, dims: Dims) -> Tile:
        """A tile with an element for each of the result's: single values are spread."""
        return spread(self._tile(expr), dims)

    def _is_scalar(self, expr: Expr) -> bool:
        """Whether it is one value for each partition."""
        if isinstance(expr, Apply):
            return all(map(self._is_scalar, expr.args))
        if not isinstance(expr, Load):
            return True
        found = self.resolve(expr)
        if isinstance(found, float) or found.free_elems != 1:
            return isinstance(found, float)
        # Of tiles of one element each, any is, that lies where numbers for partitions may.
        return expr.tensor.value is not None or self._elems() != 1 or (found.space, found.dtype) == ("sbuf", "float32")

    def _elems(self) -> int:
        elems = 1
        for _, count in self.shape[1]:
            elems *= count
        return elems

    def _affine(self, function: str, expr: Expr, result: Tile) -> None:
        """function(inner * scale + shift) on ACT; where the inside is a sum of two tiles, that goes to POOL first."""
        scale: Operand = 1.0
        shift: Operand = 0.0 if function == "relu" else -0.0  # x + -0.0 is x for every x, 0.0 would lose -0.0's sign
        inner = expr
        match inner:
            case Apply("add", (left, right)) if self._is_scalar(right):
                inner, shift = left, self.operand(right)
        match inner:
            case Apply("multiply", (left, right)) if self._is_scalar(right):
                inner, scale = self._scaled_once(left, right)
        source = self._tile(inner)
        source = spread(source, result.dims)
        self.builder.emit(Activation(result=result, source=source, scale=scale, bias=shift, function=function))

    def _scaled_once(self, inner: Expr, scale: Expr) -> tuple[Expr, Operand]:
        """What is multiplied on the way in, and by what: where two numbers follow, for a long row, by their product.

        As a norm's rows, by what their own numbers make and then by what the model has learned.
        """
        match inner:
            case Apply("multiply", (left, first)) if (
                inner not in self._made and self._is_scalar(first) and not self._is_scalar(left)
                and self._elems() > _FEW and not isinstance(scale, Num) and not isinstance(first, Num)
            ):
                return self._scaled_once(left, Apply("multiply", (first, scale)))
        return inner, self.operand(scale)

    def _binary(self, op: str, left: Expr, right: Expr, result: Tile) -> None:
        if self._is_scalar(left) and op in _COMMUTES and not self._is_scalar(right):
            left, right = right, left
        if self._is_scalar(right) or self._is_scalar(left):
            reverse = int(isinstance(left, Num) or (self._is_scalar(left) and not self._is_scalar(right)))
            tile, number = (right, left) if reverse else (left, right)
            self.builder.emit(
                TensorScalar(
                    result=result, source=spread(self._tile(tile), result.dims), scalar0=self.operand(number),
                    scalar1=0.0, op0=op, op1="bypass", reverse=reverse,
                )
            )  # fmt: skip
            return
        is_better = not self._has_scalar_step(left) or (self._elems() <= _FEW and _is_after_relu(right))
        if op in _COMMUTES and self._has_scalar_step(right) and is_better:
            left, right = right, left
        if self._has_scalar_step(left):
            assert isinstance(left, Apply)
            inner, number = left.args
            self.builder.emit(
                ScalarTensorTensor(
                    result=result, left=self._tile(inner), right=self._tile(right), scalar0=self.operand(number),
                    op0=left.op, op1=op,
                )
            )  # fmt: skip
            return
        self.builder.emit(TensorTensor(result=result, left=self._tile(left), right=self._tile(right), op=op))

    def _has_scalar_step(self, expr: Expr) -> bool:
        if not isinstance(expr, Apply) or expr.op not in ALU or len(expr.args) != 2:
            return False
        return self._is_scalar(expr.args[1]) and not self._is_scalar(expr.args[0])


def _is_after_relu(expr: Expr) -> bool:
    """Whether ACT makes what the last step is done to: POOL is then left with one instruction."""
    match expr:
        case Apply(_, (Apply("max", (_, Num(0.0))), *_)):
            return True
    return False
