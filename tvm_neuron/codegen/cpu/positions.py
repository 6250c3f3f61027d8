"""check_positions: what the CPU reads or writes at places known at run time is checked there, as on the NeuronCore."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.decompose.shapes import static_shape
from tvm_neuron.frontend.origin import Origin, op_name, origin_of
from tvm_neuron.frontend.positions import counted

CHECK = "tvm_neuron.runtime.checked_positions"
CHECK_DIVISORS = "tvm_neuron.runtime.checked_divisors"
CHECK_RANGE = "tvm_neuron.runtime.checked_range"
CHECK_REGIONS = "tvm_neuron.runtime.checked_regions"
CHECK_STEPS = "tvm_neuron.runtime.checked_steps"


@tvm.ir.transform.module_pass(opt_level=0, name="CheckPositions")
def check_positions(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """The module whose gathers and scatters count negative positions from the end, and fail where one lies outside.

    TVM's own kernels read or write whatever memory lies there. Lengths of sequences, boxes and labels are checked too.

    Raises:
        ModelError: a position known at compile time lies outside.
    """
    result = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and isinstance(func.body, relax.SeqExpr):
            result.update_func(var, _Checked(mod).visit_expr(func))
    return result


@mutator
class _Checked(PyExprMutator):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = self.visit_expr_post_order(call)
        if not isinstance(call.op, tvm.ir.Op) or op_name(call) not in _CHECKS:
            return call
        checked = dict(_CHECKS[op_name(call)](_Guard(self.builder_, call)))
        args = [checked.get(place, arg) for place, arg in enumerate(call.args)]
        return relax.Call(call.op, args, call.attrs, call.ty_args, call.span, ret_ty=call.ty)


class _Guard:
    """The operands of one call, and the checks of them; `what` names the call's operator to the user."""

    def __init__(self, builder: relax.BlockBuilder, call: relax.Call) -> None:
        self.call, self.attrs = call, call.attrs
        self._builder = builder
        origin = origin_of(call) or Origin("", op_name(call))
        self._what = f"{origin.op} '{origin.name}'"

    def rank(self, operand: int = 0) -> int:
        return int(self.call.args[operand].ty.ndim)

    def extent(self, operand: int, axis: int) -> tvm.ir.Expr:
        """A dimension of an operand, as an expression of sizes."""
        return self.call.args[operand].ty.shape[axis]

    def positions(self, positions: relax.Expr, first: int, are_tuples: bool = False) -> relax.Expr:
        """Positions along the dimension `first` of the first operand; tuples of them along that and those after it."""
        data, shape = self.call.args[0], static_shape(self.call.args[0])
        if isinstance(positions, tvm.ir.GenericConst) and shape is not None:
            given = positions.value.numpy()
            limits = np.array(shape[first : first + given.shape[-1]] if are_tuples else shape[first])
            try:
                return relax.const(counted(given, limits).astype(given.dtype), str(given.dtype))
            except ModelError as error:
                raise ModelError(f"{self._what}: {error}") from None
        return self._packed(CHECK, positions, data, _text(self._what), _number(first), _number(are_tuples))

    def range(self, operand: int, noun: str, low: int, end: Any, ignored: int | None = None) -> relax.Expr:
        """Numbers from `low` up to, without, `end`, but for those `ignored`."""
        limits = relax.ShapeExpr([low, end, *([] if ignored is None else [ignored])])
        return self._packed(CHECK_RANGE, self.call.args[operand], limits, _text(self._what), _text(noun))

    def regions(self, operand: int) -> relax.Expr:
        """Rows of an image's number in the first operand, and corners."""
        count = relax.ShapeExpr([self.extent(0, 0)])
        return self._packed(CHECK_REGIONS, self.call.args[operand], count, _text(self._what))

    def steps(self, operand: int) -> relax.Expr:
        """Numbers that are not 0."""
        return self._packed(CHECK_STEPS, self.call.args[operand], _text(self._what))

    def divisors(self) -> relax.Expr:
        """The second operand, by which whole numbers of the first are divided."""
        return self._packed(CHECK_DIVISORS, self.call.args[1], self.call.args[0], _text(self._what))

    def _packed(self, name: str, given: relax.Expr, *told: Any) -> relax.Expr:
        return self._builder.emit(relax.call_pure_packed(name, given, *told, ty_args=given.ty))

    def fields(self, operand: int) -> Iterator[relax.Expr]:
        """The tensors of an operand that is a tuple."""
        given = self.call.args[operand]
        if isinstance(given, relax.Tuple):
            yield from given.fields
        else:
            yield from (self._builder.emit(relax.TupleGetItem(given, at)) for at in range(len(given.ty.fields)))


Checks = Iterator[tuple[int, relax.Expr]]
"""Operands by number, with what stands for them."""


def _take(guard: _Guard) -> Checks:
    if guard.attrs.mode == "fast":
        axis = guard.attrs.axis
        yield 1, guard.positions(guard.call.args[1], 0 if axis is None else int(axis) % guard.rank())


def _elements(guard: _Guard) -> Checks:
    yield 1, guard.positions(guard.call.args[1], int(guard.attrs.axis) % guard.rank())


def _tuples(guard: _Guard) -> Checks:
    first = int(guard.attrs.batch_dims) if op_name(guard.call) == "gather_nd" else 0
    yield 1, guard.positions(guard.call.args[1], first, are_tuples=True)


def _each_dimension(guard: _Guard) -> Checks:
    yield 1, relax.Tuple([guard.positions(each, axis) for axis, each in enumerate(guard.fields(1))])


def _lengths(guard: _Guard) -> Checks:
    yield 1, guard.range(1, "length", 0, guard.extent(0, int(guard.attrs.seq_axis) % guard.rank()) + 1)


def _regions(guard: _Guard) -> Checks:
    yield 1, guard.regions(1)


def _labels(guard: _Guard) -> Checks:
    classes = guard.extent(0, min(1, guard.rank() - 1))
    yield 1, guard.range(1, "label", 0, classes, int(guard.attrs.ignore_index))


def _rows(guard: _Guard) -> Checks:
    yield 2, guard.range(2, "row", 0, guard.extent(0, 0))


def _counts(guard: _Guard) -> Checks:
    yield 1, guard.range(1, "count", 0, guard.extent(0, 1) + 1)


def _divisors(guard: _Guard) -> Checks:
    divisor = guard.call.args[1]
    if "int" not in str(divisor.ty.dtype):
        return
    is_safe = isinstance(divisor, tvm.ir.GenericConst) and (divisor.value.numpy() > 0).all()
    if not is_safe:
        yield 1, guard.divisors()


def _steps(guard: _Guard) -> Checks:
    yield 3, guard.steps(3)


_CHECKS: dict[str, Callable[[_Guard], Checks]] = {
    "take": _take,
    "gather_elements": _elements,
    "gather_nd": _tuples,
    "scatter_elements": _elements,
    "scatter_nd": _tuples,
    "index_tensor": _each_dimension,
    "index_put": _each_dimension,
    "reverse_sequence": _lengths,
    "vision.roi_align": _regions,
    "vision.roi_pool": _regions,
    "vision.non_max_suppression": _counts,
    "nn.nll_loss": _labels,
    "dynamic_strided_slice": _steps,
    "divide": _divisors,
    "floor_divide": _divisors,
    "floor_mod": _divisors,
    "mod": _divisors,
    "multinomial_from_uniform": _rows,
}
"""Operators whose kernels address memory, or divide whole numbers, by an operand without a limit of their own."""


def _number(value: int) -> tvm.ir.Expr:
    return tvm.tirx.IntImm("int64", int(value))


def _text(value: str) -> tvm.ir.Expr:
    return tvm.ir.StringImm(value)
