"""A Loop that is not written out, as the values that one call of it takes and its body as a graph of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import tvm_ffi
from onnx import helper
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.control_flow import graph_of
from tvm_neuron.frontend.onnx.graphs import read_names
from tvm_neuron.frontend.onnx.values import Known, Scopes, Value, dtype_of, shape_of

_NO_LIMIT = np.iinfo(np.int64).max


@dataclass(frozen=True)
class RunTimeLoop:
    """`graph` is the body with inputs of known types, of which `known` have values at compile time.

    `read` are the values of those after the round's number, the condition and the states.
    """

    graph: onnx.GraphProto
    shapes: Mapping[str, tuple[int, ...]]
    known: Mapping[str, np.ndarray]
    trips: relax.Expr
    condition: relax.Expr
    states: Sequence[relax.Expr]
    read: Sequence[relax.Expr]


def run_time_loop(node: onnx.NodeProto, operands: Sequence[Value], scopes: Scopes) -> RunTimeLoop:
    """The loop of `node`, whose body may read all that `scopes` has.

    Raises:
        ModelError: it collects results of its rounds, or holds other than tensors of known shapes.
    """
    body, given = graph_of(node, "body"), [*operands, None, None]
    states = list(operands[2:])
    collected = len(body.output) - 1 - len(states)
    if collected:
        raise ModelError(
            f"it collects {collected} results of its rounds, whose number only a run tells: a static program needs to "
            "know how many there are. Give it a number of rounds that is known, or carry the results as a state"
        )
    inner = {name for one in body.node for name in one.output} | {one.name for one in (*body.input, *body.initializer)}
    outer = (read_names(body.node) | {value.name for value in body.output}) - inner
    captured = {name: scopes[name] for name in sorted(outer) if name and name in scopes}
    formals = [value.name for value in body.input]
    carried = dict(zip(formals[2:], states, strict=True))
    shapes = {formals[0]: (), formals[1]: ()} | {
        name: _shape(name, value) for name, value in (carried | captured).items()
    }
    kinds = {formals[0]: "int64", formals[1]: "bool"}
    kinds |= {name: dtype_of(value) for name, value in (carried | captured).items()}
    graph = onnx.GraphProto()
    graph.CopyFrom(body)
    del graph.input[:]
    for name, shape in shapes.items():
        elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(kinds[name]))
        graph.input.append(helper.make_tensor_value_info(name, elem_type, shape))
    return RunTimeLoop(
        graph,
        shapes,
        {name: value.array for name, value in captured.items() if isinstance(value, Known)},
        _scalar(given[0], "int64", _NO_LIMIT),
        _scalar(given[1], "bool", True),
        [_expr(value) for value in states],
        [value for value in captured.values() if not isinstance(value, Known)],
    )


def results_of(body: relax.Function) -> list[relax.Type]:
    """The types of its results."""
    return list(body.ret_ty.fields) if isinstance(body.ret_ty, relax.TupleType) else [body.ret_ty]


def check_states(loop: RunTimeLoop, results: Sequence[relax.Type]) -> None:
    """Raises ModelError: a state does not keep its shape and dtype from round to round."""
    for number, (before, after) in enumerate(zip(loop.states, results[1:], strict=True)):
        if not tvm_ffi.structural_equal(before.ty, after):
            raise ModelError(
                f"its state {number} is {before.ty} before a round and {after} after it: a static program has tensors "
                "that keep their sizes"
            )


def _shape(name: str, value: Value) -> tuple[int, ...]:
    shape = shape_of(value)
    if not isinstance(value, Known | relax.Expr) or shape is None:
        raise ModelError(f"'{name}', which it reads, is no tensor of a shape that is known at compile time")
    return shape


def _expr(value: Value) -> relax.Expr:
    return value.expr if isinstance(value, Known) else value


def _scalar(value: Value, dtype: str, otherwise: int | bool) -> relax.Expr:
    """Without dimensions; ONNX also has them with one element."""
    if value is None:
        return relax.const(otherwise, dtype)
    if isinstance(value, Known):
        return relax.const(value.array.reshape(()), dtype)
    number = relax.op.reshape(value, relax.ShapeExpr([]))
    return number if dtype_of(value) == dtype else relax.op.astype(number, dtype)
