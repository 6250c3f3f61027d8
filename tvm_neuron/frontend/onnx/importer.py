"""The ONNX graph into a Relax function, node by node, so that each Relax call knows the node it came from.

What is known at compile time (shapes, small constants, sequences, trip counts) is resolved on the way: such nodes
leave no trace but a constant. Other nodes go, in this order, to our own converters, to the operator's body in the
ONNX standard, or to TVM's converter.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
import tvm
from onnx import helper, numpy_helper
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map, onnx_input

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.match_cast import unnest_match_casts
from tvm_neuron.frontend.onnx.batch import Batch, fix_reshape_target
from tvm_neuron.frontend.onnx.by_tvm import by_tvm
from tvm_neuron.frontend.onnx.control_flow import select_branch, unroll_loop, unroll_scan
from tvm_neuron.frontend.onnx.converters import CONVERTERS, Node
from tvm_neuron.frontend.onnx.evaluate import evaluate, is_evaluated
from tvm_neuron.frontend.onnx.functions import Functions, body_of, bound_body, has_body
from tvm_neuron.frontend.onnx.graphs import (
    node_origins,
    read_names,
    real_inputs,
    types_of,
    without_unread_outputs,
)
from tvm_neuron.frontend.onnx.literals import constant_value
from tvm_neuron.frontend.onnx.narrow import NARROW_OPERATORS, Narrow
from tvm_neuron.frontend.onnx.needs import needs_values, value_operands
from tvm_neuron.frontend.onnx.pitfalls import pitfall, prefers_body
from tvm_neuron.frontend.onnx.recurrent import RECURRENT
from tvm_neuron.frontend.onnx.sequences import SEQUENCE_OPERATORS
from tvm_neuron.frontend.onnx.tagging import tag_operators
from tvm_neuron.frontend.onnx.values import Known, Scopes, Value, shape_of
from tvm_neuron.frontend.origin import OPERATORS_ATTR, OUTPUTS_ATTR, Origin
from tvm_neuron.runtime.tensors import CARRIERS

_LARGEST_EMBEDDED_ELEMS = 16
"""Floating initializers up to this size are embedded as constants: operators read them as attributes (axes, scales)."""

_OWN_OPSET = 18
"""Nodes that the importer itself makes are written in this operator set."""


class Importer:
    """One import. Parameters: the static `shapes` and the `dtypes` of the inputs, `known` values of some of them,
    `batch` the change of the batch size if the caller made one, and the model's own `functions`.

    Weights (floating initializers of more than 16 elements) become inputs of `main` after the model's own.
    """

    def __init__(
        self,
        shapes: dict[str, tuple[int, ...]],
        dtypes: dict[str, str],
        known: dict[str, np.ndarray],
        batch: Batch | None,
        functions: Functions,
    ) -> None:
        self._bb = relax.BlockBuilder()
        self._shapes = shapes
        self._dtypes = dtypes
        self._given = known
        self._batch = batch
        self._functions = functions
        self._scopes = Scopes()
        self._operators: list[Origin] = []
        self._ends: dict[relax.Var, Origin] = {}
        self._bound: set[relax.Var] = set()
        self._weights: dict[str, tvm.runtime.Tensor] = {}
        self._weight_vars: dict[str, tuple[relax.Var, tvm.runtime.Tensor]] = {}
        self._made = 0

    def import_graph(self, graph: onnx.GraphProto, opset: int) -> tuple[tvm.IRModule, dict[str, tvm.runtime.Tensor]]:
        """The module, whose `main` takes the inputs and then the weights, and the weights by name."""
        self._bind_initializers(graph)
        inputs = self._bind_inputs(graph)
        variables = [*inputs, *(var for var, _ in self._weight_vars.values())]
        self._bound = set(variables)
        with self._bb.function("main", params=variables):
            with self._bb.dataflow():
                self._walk(graph.node, [output.name for output in graph.output], opset, None, "")
                results = [self._output(value.name) for value in graph.output]
                result = self._bb.emit_output(results[0] if len(results) == 1 else relax.Tuple(results))
            self._bb.emit_func_output(result)
        mod = self._bb.get()
        attrs = {
            "num_input": len(inputs),
            OPERATORS_ATTR: [origin.encode() for origin in self._operators],
            OUTPUTS_ATTR: [output.name for output in graph.output],
        }
        mod["main"] = tag_operators(unnest_match_casts(mod["main"]), self._ends, self._operators).with_attrs(attrs)
        return mod, self._weights

    def _bind_initializers(self, graph: onnx.GraphProto) -> None:
        read = read_names(graph.node) | {output.name for output in graph.output}
        for proto in graph.initializer:
            if proto.name in read:
                self._bind_array(proto.name, numpy_helper.to_array(proto), is_weight=True)

    def _bind_array(self, name: str, array: np.ndarray, is_weight: bool) -> None:
        is_floating = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
        if not is_weight or not is_floating or array.size <= _LARGEST_EMBEDDED_ELEMS:
            self._scopes.bind(name, Known(array), frozenset())
            return
        tensor = tvm.runtime.tensor(array)
        var = relax.Var(name, relax.TensorType(array.shape, array.dtype.name))
        self._weights[name] = tensor
        self._weight_vars[name] = (var, tensor)
        self._scopes.bind(name, var, frozenset())

    def _bind_inputs(self, graph: onnx.GraphProto) -> list[relax.Var]:
        """The inputs of `main`; those that are known or hold no elements are constants, the latter inputs as well."""
        variables = []
        for value in real_inputs(graph):
            if value.name in self._given:
                self._scopes.bind(value.name, Known(self._given[value.name]), frozenset())
                continue
            shape = self._shapes[value.name]
            elem_type = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            dtype = self._dtypes.get(value.name, elem_type.name)
            variables.append(relax.Var(value.name, relax.TensorType(shape, CARRIERS.get(dtype, dtype))))
            given = Narrow(variables[-1], dtype) if dtype in CARRIERS else variables[-1]
            bound = Known(np.zeros(shape, elem_type)) if math.prod(shape) == 0 else given
            self._scopes.bind(value.name, bound, frozenset([value.name]))
        return variables

    def _output(self, name: str) -> relax.Expr:
        value = self._scopes[name]
        if isinstance(value, Known):
            return value.expr
        if isinstance(value, Narrow):
            return value.expr
        if isinstance(value, relax.Expr):
            return value
        kind = "an empty optional" if value is None else f"a sequence of {len(value)}"
        raise ModelError(f"output '{name}' is {kind}; only tensors can be outputs")

    def _walk(
        self, nodes: Iterable[onnx.NodeProto], wanted: Sequence[str], opset: int, outer: Origin | None, suffix: str
    ) -> None:
        """Import `nodes` in order. They belong to `outer`, or are operators of their own, named with `suffix`."""
        nodes = list(nodes)
        origins = [outer] * len(nodes) if outer is not None else node_origins(nodes, suffix)
        read = read_names(nodes) | set(wanted)
        for node, origin in zip(nodes, origins, strict=True):
            assert origin is not None
            if self._batch is not None:
                node = self._fix_batch(node, origin)
            try:
                self._import(without_unread_outputs(node, read), origin, opset, is_whole=outer is None)
            except ModelError as error:
                if str(error).startswith(("operator '", "the model")):
                    raise
                raise ModelError(f"operator '{origin.name}' ({origin.op}) can't be imported: {error}") from error

    def _import(self, node: onnx.NodeProto, origin: Origin, opset: int, is_whole: bool) -> None:
        """Bind the node's outputs."""
        operands = [self._scopes[name] for name in node.input]
        if is_whole:
            self._operators.append(origin)
        needs = self._scopes.needs(*read_names([node]))
        results = self._resolved(node, operands, origin, opset, is_whole)
        if results is None:
            for name in value_operands(node):
                if self._scopes.known(name) is None and self._can_be_given(self._scopes.needs(name)):
                    raise needs_values(origin, name, self._scopes.needs(name))
            body = self._body(node, operands, opset)
            if body is not None:
                self._expand(node, body, origin, opset)
                return
            results = self._converted(node, operands, opset)
        for name, value in zip(node.output, results, strict=False):
            self._bind(name, value, origin, needs)

    def _bind(self, name: str, value: Value, origin: Origin, needs: frozenset[str]) -> None:
        if isinstance(value, Narrow):
            whole = self._bb.emit(value.expr) if isinstance(value.expr, relax.Call) else value.expr
            self._bind(name, whole, origin, needs)
            bound = self._scopes[name]
            value = Known(bound.array.astype(value.dtype)) if isinstance(bound, Known) else Narrow(bound, value.dtype)
            self._scopes.bind(name, value, needs)
            return
        if isinstance(value, tvm.ir.GenericConst) and math.prod(value.ty.shape or [1]) <= _LARGEST_EMBEDDED_ELEMS:
            value = Known(value.value.numpy())
        if isinstance(value, relax.Call | relax.TupleGetItem) and isinstance(value.ty, relax.TensorType):
            value = self._bb.emit(value)
        if isinstance(value, relax.Var) and value not in self._bound:
            self._bound.add(value)
            self._ends[value] = origin
        shape = shape_of(value) if isinstance(value, relax.Var) else None
        if shape is not None and 0 in shape:
            value = Known(np.zeros(shape, helper.tensor_dtype_to_np_dtype(_elem_type(value))))
        self._scopes.bind(name, value, needs)

    def _can_be_given(self, inputs: frozenset[str]) -> bool:
        """Whether these are inputs of the kind that says how, not what: numbers and short lists of them."""
        return bool(inputs) and all(len(self._shapes[name]) <= 1 for name in inputs)

    def _resolved(
        self, node: onnx.NodeProto, operands: list[Value], origin: Origin, opset: int, is_whole: bool
    ) -> list[Value] | None:
        """The outputs of a node that is resolved at import; None for any other."""
        op = node.op_type
        if op == "Constant":
            return [constant_value(node)]
        if op in ("Shape", "Size") and shape_of(operands[0]) is not None:
            results = evaluate(node, [np.broadcast_to(np.zeros((), bool), shape_of(operands[0]) or ())], opset)
            assert results is not None
            return [Known(result) for result in results]
        if op in ("If", "Loop", "Scan"):
            return self._control_flow(node, operands, origin, opset, is_whole)
        if op in SEQUENCE_OPERATORS and node.domain in ("", "ai.onnx"):
            missing = [name for name in value_operands(node) if self._scopes.known(name) is None]
            if missing:
                raise needs_values(origin, missing[0], self._scopes.needs(missing[0]))
            return [SEQUENCE_OPERATORS[op](node, operands, self._maker(origin))]
        if op == "Identity":
            return operands
        if op in RECURRENT:
            return RECURRENT[op](node, operands, self._maker(origin))
        arrays = [value.array if isinstance(value, Known) else None for value in operands]
        is_known = all(array is not None or value is None for array, value in zip(arrays, operands, strict=True))
        if is_known and (node.domain, op) not in self._functions and is_evaluated(node, arrays):
            results = evaluate(node, arrays, opset)
            return None if results is None else [Known(result) for result in results]
        return None

    def _control_flow(
        self, node: onnx.NodeProto, operands: list[Value], origin: Origin, opset: int, is_whole: bool
    ) -> list[Value]:
        for name in value_operands(node):
            if self._scopes.known(name) is None and self._can_be_given(self._scopes.needs(name)):
                raise needs_values(origin, name, self._scopes.needs(name))

        def run(graph: onnx.GraphProto, values: list[Value], suffix: str) -> list[Value]:
            with self._scopes.inner():
                for proto in graph.initializer:
                    self._bind_array(proto.name, numpy_helper.to_array(proto), is_weight=False)
                needs = self._scopes.needs(*node.input)
                for formal, value in zip(graph.input, values, strict=True):
                    self._scopes.bind(formal.name, value, needs)
                inner = None if is_whole else origin
                names = [output.name for output in graph.output]
                self._walk(graph.node, names, opset, inner, f"{origin.name}{suffix}/")
                return [self._scopes[name] for name in names]

        make = self._maker(origin)
        match node.op_type:
            case "If":
                return select_branch(node, operands, run, make)
            case "Loop":
                return unroll_loop(node, operands, run, make)
            case _:
                return unroll_scan(node, operands, run, make, opset)

    def _maker(self, origin: Origin) -> Any:
        """Makes further nodes of the operator `origin`."""

        def make(op: str, operands: list[Value], **attributes: Any) -> Value:
            self._made += 1
            result = f"neuron.{self._made}"
            names = [f"{result}.{index}" if value is not None else "" for index, value in enumerate(operands)]
            node = helper.make_node(op, names, [result], **attributes)
            needs = frozenset[str]()
            for name, value in zip(names, operands, strict=True):
                self._scopes.bind(name, value, needs)
            self._import(node, origin, _OWN_OPSET, is_whole=False)
            return self._scopes[node.output[0]]

        return make

    def _body(self, node: onnx.NodeProto, operands: list[Value], opset: int) -> onnx.FunctionProto | None:
        """The function that the node stands for, where it has to be expanded."""
        if (node.domain, node.op_type) in self._functions:
            return self._functions[node.domain, node.op_type]
        if node.op_type in CONVERTERS or not has_body(node, opset):
            return None
        if node.op_type in _get_convert_map() and not prefers_body(node) and not pitfall(node, self._scopes.known):
            return None
        return body_of(node, types_of(operands), opset)

    def _expand(self, node: onnx.NodeProto, body: onnx.FunctionProto, origin: Origin, opset: int) -> None:
        versions = {entry.domain: entry.version for entry in body.opset_import}
        inner_opset = versions.get("", versions.get("ai.onnx", opset))
        given = dict(zip(body.input, node.input, strict=False))
        bound = {name: self._scopes[given.get(name, "")] for name in body.input}
        needs = {name: self._scopes.needs(given.get(name, "")) for name in body.input}
        with self._scopes.inner(isolated=True):
            for name, value in bound.items():
                self._scopes.bind(name, value, needs[name])
            self._walk(bound_body(body, node, opset), list(body.output), inner_opset, origin, "")
            results = [self._scopes.get(name) for name in body.output]  # some bodies leave out optional outputs
            reached = [self._scopes.needs(name) for name in body.output]
        for name, value, needed in zip(node.output, results, reached, strict=False):
            self._scopes.bind(name, value, needed)

    def _converted(self, node: onnx.NodeProto, operands: list[Value], opset: int) -> list[Value]:
        """The outputs by a converter of ours or TVM's."""
        if any(isinstance(value, list) for value in operands):
            raise ModelError("it takes a sequence, which only operators on sequences can")
        inputs = onnx_input([_expr(value, node.op_type) for value in operands])
        attrs = _attributes(node)
        if node.op_type in CONVERTERS:
            converted = CONVERTERS[node.op_type](Node(self._bb, list(inputs), attrs, opset, len(node.output)))
            if isinstance(converted, Narrow):
                return [converted]
            if converted is not None:
                return self._outputs(self._bb.normalize(converted), len(node.output))
        reason = pitfall(node, self._scopes.known)
        if reason:
            raise ModelError(f"{reason}; TVM's importer would compute it wrongly")
        return self._outputs(by_tvm(self._bb, node, inputs, attrs, opset, self._weight_vars), len(node.output))

    def _outputs(self, value: relax.Expr, count: int) -> list[Value]:
        if not isinstance(value.ty, relax.TupleType):
            return [value]
        if isinstance(value, relax.Tuple):
            fields = list(value.fields)
        else:
            whole = value if isinstance(value, relax.Var) else self._bb.emit(value)
            fields = [self._bb.emit(relax.TupleGetItem(whole, index)) for index in range(len(value.ty.fields))]
        if len(fields) < count:
            raise ModelError(f"its converter makes {len(fields)} of its {count} outputs")
        return fields

    def _fix_batch(self, node: onnx.NodeProto, origin: Origin) -> onnx.NodeProto:
        assert self._batch is not None
        if not self._batch.reaches(node) or node.op_type != "Reshape":
            return node
        shape, target = shape_of(self._scopes[node.input[0]]), self._scopes.known(node.input[1])
        if target is None or shape is None:
            return node
        fixed = fix_reshape_target(shape, tuple(target.tolist()), self._batch, origin)
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[1] = f"{node.output[0]}.neuron_shape"
        self._scopes.bind(copy.input[1], Known(np.array(fixed, dtype="int64")), frozenset())
        return copy


def _expr(value: Value, op: str) -> Any:
    """An operand as a converter takes it; one of a dtype narrower than a byte as it is, where the converter can."""
    if isinstance(value, Known) and value.array.dtype.name in CARRIERS:
        value = Narrow(value.expr, value.array.dtype.name)
    if isinstance(value, Narrow) and op not in NARROW_OPERATORS:
        raise ModelError(
            f"it takes {value.dtype}, which {', '.join(NARROW_OPERATORS)} alone can: neither TVM nor the core computes "
            "in less than a byte; put a Cast before it"
        )
    return value.expr if isinstance(value, Known) else value


def _elem_type(value: relax.Expr) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(str(value.ty.dtype))))


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    found = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
