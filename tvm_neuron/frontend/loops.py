"""Loops whose end only a run tells, as calls of a module: an operator that holds its body as a function.

`LOOP(trips, condition, *states, *read)` runs the body while there are rounds left and the condition holds. The body
takes the round's number (int64), the condition (bool), the states and what else it reads; it gives the condition and
the states of the next round. Results are the states, whose shapes and dtypes stay.
"""

from collections.abc import Sequence

import tvm
from tvm import relax

from tvm_neuron.frontend.origin import OPERATORS_ATTR, Origin
from tvm_neuron.frontend.own_operators import register

LOOP = "relax.neuron.loop"
_BODY, _STATES, _REASON = "body", "states", "reason"


def call_loop(
    body: relax.Function, trips: relax.Expr, condition: relax.Expr, states: Sequence[relax.Expr],
    read: Sequence[relax.Expr], reason: str,
) -> relax.Call:  # fmt: skip
    """The call; `reason` says why its rounds are not written out, and so why it runs on the CPU."""
    ty = relax.TupleType([state.ty for state in states])
    attrs = tvm.ir.make_node("ir.DictAttrs", **{_BODY: body, _STATES: len(states), _REASON: reason})
    return relax.Call(tvm.ir.Op.get(LOOP), [trips, condition, *states, *read], attrs, [ty], ret_ty=ty)


def is_loop(expr: relax.Expr) -> bool:
    """Whether it is a call of `LOOP`."""
    return isinstance(expr, relax.Call) and bool(expr.op == tvm.ir.Op.get(LOOP))


def body_of(call: relax.Call) -> tuple[relax.Function, int]:
    """The function of a round, and the number of states."""
    return call.attrs[_BODY], int(call.attrs[_STATES])


def reason_of(call: relax.Call) -> str:
    """Why it runs on the CPU."""
    return str(call.attrs[_REASON])


def operators_in(call: relax.Call) -> list[Origin]:
    """The model's operators in the body of a loop, and in those of loops in it."""
    listed = [Origin.decode(str(text)) for text in body_of(call)[0].attrs[OPERATORS_ATTR]]
    return [origin for origin in listed if origin is not None]


register(LOOP, "A loop whose end only a run tells: attributes `body`, `states` and `reason`")
