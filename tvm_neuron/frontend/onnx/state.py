"""State: what one import knows so far; the graph's inputs and outputs, and how results get their names."""

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import onnx
import tvm
from onnx import helper
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.literals import array_of
from tvm_neuron.frontend.onnx.model_file import Stored
from tvm_neuron.frontend.onnx.narrow import Narrow
from tvm_neuron.frontend.onnx.values import Known, Scopes, Value, shape_of
from tvm_neuron.frontend.origin import Origin
from tvm_neuron.runtime.tensors import CARRIERS, shared

LARGEST_EMBEDDED_ELEMS = 16
"""Floating initializers up to this size are embedded as constants: operators read them as attributes (axes, scales)."""


@dataclass
class State:
    """One import: static `shapes`, `dtypes` and `given` values of the model's inputs, and its
    `producer`; the rest grows node by node.

    `ends` has the operator that computed a variable, `bound` all variables, `weight_vars` those of weights by name.
    """

    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]
    given: dict[str, np.ndarray]
    producer: str
    bb: relax.BlockBuilder = field(default_factory=relax.BlockBuilder)
    scopes: Scopes = field(default_factory=Scopes)
    ends: dict[relax.Var, Origin] = field(default_factory=dict)
    bound: set[relax.Var] = field(default_factory=set)
    weights: dict[str, tvm.runtime.Tensor] = field(default_factory=dict)
    weight_vars: dict[str, tuple[relax.Var, tvm.runtime.Tensor]] = field(default_factory=dict)


def bind_initializers(state: State, graph: onnx.GraphProto, stored: Stored, read: set[str]) -> None:
    """Those whose names are in `read`; the values of those `stored` are not in the graph."""
    wanted = [(number, proto) for number, proto in enumerate(graph.initializer) if proto.name in read]
    with ThreadPoolExecutor() as pool:
        reading = {number: pool.submit(stored[number]) for number, _ in wanted if number in stored}
        for number, proto in wanted:
            array = reading[number].result() if number in reading else array_of(proto)
            bind_array(state, proto.name, array, is_weight=True)


def bind_array(state: State, name: str, array: np.ndarray, is_weight: bool) -> None:
    """An array under its name: an input of `main` if it is a large weight, else known."""
    is_floating = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    if not is_weight or not is_floating or array.size <= LARGEST_EMBEDDED_ELEMS:
        state.scopes.bind(name, Known(array), frozenset())
        return
    tensor = shared(array)
    var = relax.Var(name, relax.TensorType(array.shape, array.dtype.name))
    state.weights[name] = tensor
    state.weight_vars[name] = (var, tensor)
    state.scopes.bind(name, var, frozenset())


def bind_inputs(state: State, inputs: Iterable[onnx.ValueInfoProto]) -> list[relax.Var]:
    """The inputs of `main`; those that are known or hold no elements are constants, the latter inputs as well."""
    variables = []
    for value in inputs:
        if value.name in state.given:
            state.scopes.bind(value.name, Known(state.given[value.name]), frozenset())
            continue
        shape = state.shapes[value.name]
        elem_type = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        dtype = state.dtypes.get(value.name, elem_type.name)
        variables.append(relax.Var(value.name, relax.TensorType(shape, CARRIERS.get(dtype, dtype))))
        given = Narrow(variables[-1], dtype) if dtype in CARRIERS else variables[-1]
        bound = Known(np.zeros(shape, elem_type)) if math.prod(shape) == 0 else given
        state.scopes.bind(value.name, bound, frozenset([value.name]))
    return variables


def output(state: State, name: str) -> relax.Expr:
    """What `main` returns for an output."""
    value = state.scopes[name]
    if isinstance(value, Known):
        return value.expr
    if isinstance(value, Narrow):
        return value.expr
    if isinstance(value, relax.Expr):
        return value
    kind = "an empty optional" if value is None else f"a sequence of {len(value)}"
    raise ModelError(f"output '{name}' is {kind}; only tensors can be outputs")


def bind_result(state: State, name: str, value: Value, origin: Origin, needs: frozenset[str]) -> None:
    """Give a result its name: a variable of the function, or known where its converter gave a small constant."""
    if isinstance(value, Narrow):
        whole = state.bb.emit(value.expr) if isinstance(value.expr, relax.Call) else value.expr
        bind_result(state, name, whole, origin, needs)
        bound = state.scopes[name]
        value = Known(bound.array.astype(value.dtype)) if isinstance(bound, Known) else Narrow(bound, value.dtype)
        state.scopes.bind(name, value, needs)
        return
    if isinstance(value, tvm.ir.GenericConst) and math.prod(value.ty.shape or [1]) <= LARGEST_EMBEDDED_ELEMS:
        value = Known(value.value.numpy())
    if isinstance(value, relax.Call | relax.TupleGetItem) and isinstance(value.ty, relax.TensorType):
        value = state.bb.emit(value)
    if isinstance(value, relax.Var) and value not in state.bound:
        state.bound.add(value)
        state.ends[value] = origin
    shape = shape_of(value) if isinstance(value, relax.Var) else None
    if shape is not None and 0 in shape:
        value = Known(np.zeros(shape, helper.tensor_dtype_to_np_dtype(_elem_type(value))))
    state.scopes.bind(name, value, needs)


def _elem_type(value: relax.Expr) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(str(value.ty.dtype))))
