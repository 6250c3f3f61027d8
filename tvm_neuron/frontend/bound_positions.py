"""bound_positions: sums that only choose rows of a table have operands of few bits, which engines add exactly.

Models that keep the tables of all their columns in one add an offset to each column's number. Engines compute with
floats of 24 bits, so that they add no integers of which nothing is known. But a number of 2^23 lies as far behind any
row as a greater one: whether a position lies in the table, and which row it is, stays as it is.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.frontend.decompose.emitter import Emitter
from tvm_neuron.frontend.decompose.shapes import static_shape
from tvm_neuron.frontend.known import Made, uses_of
from tvm_neuron.frontend.origin import bindings_of, with_blocks

_FAR = 2**23
_SUMS = ("relax.add", "relax.subtract")
_DTYPES = ("int32", "int64")
_MOVES = ("reshape", "astype", "squeeze", "expand_dims", "permute_dims", "strided_slice", "take", "split")


def bound_positions(func: relax.Function) -> relax.Function:
    """Gives such sums, of what comes in and a constant, an operand of at most 2^23 in either direction.

    What the model computes, as numbers of tokens, mostly has bounds that follow from how it does.
    """
    rows, uses = _rows_chosen(func), uses_of(func)
    made = {binding.var: binding.value for binding in bindings_of(func)}
    blocks = []
    for block in func.body.blocks:
        bindings: list[relax.Binding] = []
        for binding in block.bindings:
            is_bounded = binding.var in rows and uses[binding.var] == rows[binding.var][0]
            bindings += (_bounded(binding, rows[binding.var][1], made) if is_bounded else None) or [binding]
        blocks.append(type(block)(bindings))
    return with_blocks(func, blocks)


def _rows_chosen(func: relax.Function) -> Mapping[relax.Var, tuple[int, int]]:
    """Of each variable that chooses rows, how often it does, and how many the largest of these tables has."""
    times, most = Counter[relax.Var](), dict[relax.Var, int]()
    for value in (binding.value for binding in bindings_of(func)):
        if not isinstance(value, relax.Call) or getattr(value.op, "name", "") != "relax.take":
            continue
        table, positions = value.args
        shape, axis = static_shape(table), value.attrs.axis
        if shape is not None and axis is not None and value.attrs.mode != "wrap" and table is not positions:
            times[positions] += 1
            most[positions] = max(most.get(positions, 0), shape[int(axis)])
    return {positions: (times[positions], rows) for positions, rows in most.items()}


def _comes_in(value: relax.Expr, made: Made) -> bool:
    """Whether it is an input, or elements of one."""
    while value in made:
        value = made[value]
        if isinstance(value, relax.TupleGetItem):
            value = value.tuple_value
        elif isinstance(value, relax.Call) and getattr(value.op, "name", "").removeprefix("relax.") in _MOVES:
            value = value.args[0]
    return isinstance(value, relax.Var)


def _bounded(binding: relax.Binding, rows: int, made: Made) -> list[relax.Binding] | None:
    """What the sum becomes; None of anything else, and where numbers are too large to tell."""
    call = binding.value
    if not isinstance(call, relax.Call) or getattr(call.op, "name", "") not in _SUMS:
        return None
    constants = [arg.value.numpy() for arg in call.args if isinstance(arg, tvm.ir.GenericConst)]
    if not all(isinstance(arg, tvm.ir.GenericConst) or _comes_in(arg, made) for arg in call.args):
        return None
    if len(constants) != 1 or str(call.ty.dtype) not in _DTYPES or not constants[0].size:
        return None
    if int(np.abs(constants[0]).max()) + rows >= _FAR:
        return None
    emitter = Emitter(binding, {})
    ends = [relax.const(end, str(call.ty.dtype)) for end in (_FAR, -_FAR)]

    def near(operand: relax.Expr) -> relax.Expr:
        if isinstance(operand, tvm.ir.GenericConst):
            return operand
        return emitter.emit(relax.op.maximum(emitter.emit(relax.op.minimum(operand, ends[0])), ends[1]))

    emitter.emit(relax.Call(call.op, [near(arg) for arg in call.args], call.attrs))
    *before, last = emitter.bindings
    return [*before, relax.VarBinding(binding.var, last.value)]
