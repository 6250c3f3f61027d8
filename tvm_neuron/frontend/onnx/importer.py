"""The ONNX graph into a Relax function, node by node, so that each Relax call knows the node it came from.

What is known at compile time (shapes, small constants, sequences, trip counts) is resolved on the way: such nodes
leave no trace but a constant. Other nodes go, in this order, to our own converters, to the operator's body in the
ONNX standard, or to TVM's converter.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx
import tvm
from onnx import helper
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.bits import BITS_DOMAIN, call_bits
from tvm_neuron.frontend.blocks import ended_on_error
from tvm_neuron.frontend.by_hand import KERNEL_DOMAIN, KERNELS, call_by_hand
from tvm_neuron.frontend.drawing import DRAW_DOMAIN, call_draw
from tvm_neuron.frontend.loops import call_loop
from tvm_neuron.frontend.match_cast import unnest_match_casts
from tvm_neuron.frontend.normalize import bind_params
from tvm_neuron.frontend.onnx.batch import Batch, fix_reshape_target
from tvm_neuron.frontend.onnx.control_flow import (
    CONTROL_FLOW,
    NotUnrolledError,
    graph_of,
    select_branch,
    unroll_loop,
    unroll_scan,
)
from tvm_neuron.frontend.onnx.convert import converted
from tvm_neuron.frontend.onnx.converters import CONVERTERS
from tvm_neuron.frontend.onnx.evaluate import evaluate, is_evaluated
from tvm_neuron.frontend.onnx.functions import Functions, body_of, bound_body, has_body
from tvm_neuron.frontend.onnx.graphs import (
    node_origins,
    read_names,
    real_inputs,
    types_of,
    without_unread_outputs,
)
from tvm_neuron.frontend.onnx.left import Left, Named, is_settled
from tvm_neuron.frontend.onnx.literals import array_of, constant_value
from tvm_neuron.frontend.onnx.microsoft import DOMAIN, MICROSOFT
from tvm_neuron.frontend.onnx.model_file import Stored
from tvm_neuron.frontend.onnx.needs import needs_values, value_operands
from tvm_neuron.frontend.onnx.pitfalls import pitfall, prefers_body
from tvm_neuron.frontend.onnx.recurrent import RECURRENT
from tvm_neuron.frontend.onnx.run_time_loop import check_states, results_of, run_time_loop
from tvm_neuron.frontend.onnx.sequences import SEQUENCE_OPERATORS
from tvm_neuron.frontend.onnx.shapes import with_tensors
from tvm_neuron.frontend.onnx.state import State, bind_array, bind_initializers, bind_inputs, bind_result, output
from tvm_neuron.frontend.onnx.tagging import tag_operators
from tvm_neuron.frontend.onnx.values import Known, Value, dtype_of, shape_of
from tvm_neuron.frontend.origin import OPERATORS_ATTR, OUTPUTS_ATTR, Origin

_OWN_OPSET = 18
"""Nodes that the importer itself makes are written in this operator set."""


class Importer:
    """One import. Parameters: the static `shapes` and the `dtypes` of the inputs, `known` values of some of them,
    `batch` the change of the batch size if the caller made one, and the model's own `functions`,
    and the `producer` that wrote it.

    Weights (floating initializers of more than 16 elements) become inputs of `main` after the model's own.
    """

    def __init__(
        self,
        shapes: dict[str, tuple[int, ...]],
        dtypes: dict[str, str],
        known: dict[str, np.ndarray],
        batch: Batch | None,
        functions: Functions,
        producer: str,
    ) -> None:
        self._state = State(shapes, dtypes, known, producer)
        self._scopes = self._state.scopes
        self._batch = batch
        self._functions = functions
        self._operators: list[Origin] = []
        self._made = 0

    def import_graph(
        self, graph: onnx.GraphProto, stored: Stored, opset: int
    ) -> tuple[tvm.IRModule, dict[str, tvm.runtime.Tensor]]:
        """The module, whose `main` takes the inputs and then the weights, and the weights by name.

        `stored` are those initializers whose values are not in the graph.
        """
        names = [value.name for value in graph.output]

        def walk() -> list[str]:
            self._walk(graph.node, names, opset, None, "")
            return names

        return self._module(graph, stored, real_inputs(graph), read_names(graph.node) | set(names), walk)

    def import_stage(
        self, graph: onnx.GraphProto, stored: Stored, inputs: Sequence[onnx.ValueInfoProto], nodes: Sequence[Named],
        opset: int,
    ) -> tuple[tvm.IRModule, dict[str, tvm.runtime.Tensor], Left]:  # fmt: skip
        """The module and its weights, of those `nodes` whose operands are there with known shapes, and the others.

        Its outputs are those values that what is left reads and that are outputs of the graph. `inputs` are values that
        earlier stages made, and the model's own; initializers are those of `graph`.
        """
        left = Left()
        outputs = {value.name for value in graph.output}
        read = read_names(node for node, _ in nodes) | outputs
        given = {value.name for value in inputs}
        initializers = {proto.name for proto in graph.initializer} - outputs

        def walk() -> list[str]:
            for node, origin in nodes:
                self._import_if_ready(node, origin, opset, left)
            for name in sorted((read_names(node for node, _ in left.nodes) | outputs) - given - initializers):
                if name and name in self._scopes:
                    left.take(name, self._scopes[name])
            return list(left.made)

        mod, weights = self._module(graph, stored, inputs, read - given, walk)
        return mod, weights, left

    def _import_if_ready(self, node: onnx.NodeProto, origin: Origin, opset: int, left: Left) -> None:
        """Import a node, or leave it: an operand is not there or of unknown shape, or it has to be known itself."""
        read = {name for name in read_names([node]) if name in self._scopes or name in left.unmade}
        if any(name in left.unmade or not is_settled(self._scopes[name]) for name in read):
            left.leave(node, origin)
            return
        unknown = {name for name in read if name and not isinstance(self._scopes[name], Known)}
        if node.op_type == "If" and node.input[0] in unknown:
            left.leave(node, origin, {node.input[0]})
            return
        done = len(self._operators)
        try:
            self._import_named(node, origin, opset, is_whole=True)
        except ModelError:
            asked = set(value_operands(node)) & unknown
            if not asked and (node.op_type in CONTROL_FLOW or (node.domain, node.op_type) in self._functions):
                asked = {name for name in unknown if np.dtype(dtype_of(self._scopes[name])).kind in "iub"} or unknown
            if not asked:
                raise
            del self._operators[done:]
            left.leave(node, origin, asked)

    def _module(
        self, graph: onnx.GraphProto, stored: Stored, given: Sequence[onnx.ValueInfoProto], read: set[str],
        walk: Callable[[], list[str]],
    ) -> tuple[tvm.IRModule, dict[str, tvm.runtime.Tensor]]:  # fmt: skip
        """The module whose operators `walk` imports; it gives the outputs' names. Initializers are those in `read`."""
        bind_initializers(self._state, graph, stored, read)
        inputs = bind_inputs(self._state, given)
        variables = [*inputs, *(var for var, _ in self._state.weight_vars.values())]
        self._state.bound = set(variables)
        bb = self._state.bb
        with bb.function("main", params=variables):
            with ended_on_error(bb), bb.dataflow():
                names = walk()
                results = [output(self._state, name) for name in names]
                result = bb.emit_output(results[0] if len(results) == 1 else relax.Tuple(results))
            bb.emit_func_output(result)
        mod = bb.get()
        attrs = {
            "num_input": len(inputs),
            OPERATORS_ATTR: [origin.encode() for origin in self._operators],
            OUTPUTS_ATTR: names,
        }
        main = tag_operators(unnest_match_casts(mod["main"]), self._state.ends, self._operators)
        mod["main"] = main.with_attrs(attrs)
        return mod, self._state.weights

    def _walk(
        self, nodes: Iterable[onnx.NodeProto], wanted: Sequence[str], opset: int, outer: Origin | None, suffix: str
    ) -> None:
        """Import `nodes` in order. They belong to `outer`, or are operators of their own, named with `suffix`."""
        nodes = list(nodes)
        origins = [outer] * len(nodes) if outer is not None else node_origins(nodes, suffix)
        read = read_names(nodes) | set(wanted)
        for node, origin in zip(nodes, origins, strict=True):
            assert origin is not None
            self._import_named(without_unread_outputs(node, read), origin, opset, is_whole=outer is None)

    def _import_named(self, node: onnx.NodeProto, origin: Origin, opset: int, is_whole: bool) -> None:
        """The same as `_import`, whose errors name the operator, with the batch size that the model is given."""
        if self._batch is not None:
            node = self._fix_batch(node, origin)
        try:
            self._import(node, origin, opset, is_whole)
        except ModelError as error:
            if str(error).startswith(("operator '", "the model")):
                raise
            raise ModelError(f"operator '{origin.name}' ({origin.op}) can't be imported: {error}") from error

    def _import(self, node: onnx.NodeProto, origin: Origin, opset: int, is_whole: bool) -> None:
        """Bind the node's outputs."""
        node = with_tensors(self._state, node, origin)
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
            results = converted(self._state, node, operands, opset)
        for name, value in zip(node.output, results, strict=False):
            bind_result(self._state, name, value, origin, needs)

    def _can_be_given(self, inputs: frozenset[str]) -> bool:
        """Whether these are inputs of the kind that says how, not what: numbers and short lists of them."""
        return bool(inputs) and all(len(self._state.shapes[name]) <= 1 for name in inputs)

    def _resolved(
        self, node: onnx.NodeProto, operands: list[Value], origin: Origin, opset: int, is_whole: bool
    ) -> list[Value] | None:
        """The outputs of a node that is resolved at import; None for any other."""
        op = node.op_type
        if node.domain == KERNEL_DOMAIN and (op in KERNELS or (node.domain, op) not in self._functions):
            return self._by_hand(node, operands)
        if node.domain == DRAW_DOMAIN:
            return [self._drawn(node)]
        if node.domain == BITS_DOMAIN:
            return [_bits(operands[0], op)]
        if op == "Constant":
            return [constant_value(node)]
        if op in ("Shape", "Size") and shape_of(operands[0]) is not None:
            results = evaluate(node, [np.broadcast_to(np.zeros((), bool), shape_of(operands[0]) or ())], opset)
            assert results is not None
            return [Known(result) for result in results]
        if op in CONTROL_FLOW:
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
        if op in MICROSOFT and node.domain == DOMAIN:
            return MICROSOFT[op](node, operands, self._maker(origin))
        arrays = [value.array if isinstance(value, Known) else None for value in operands]
        is_known = all(array is not None or value is None for array, value in zip(arrays, operands, strict=True))
        if is_known and (node.domain, op) not in self._functions and is_evaluated(node, arrays):
            results = evaluate(node, arrays, opset)
            return None if results is None else [Known(result) for result in results]
        return None

    def _drawn(self, node: onnx.NodeProto) -> Value:
        """Random numbers of each run, other ones for each node and each round of a loop that is written out."""
        self._made += 1
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        dtype = "float64" if attributes["is_double"] else "float32"
        return self._state.bb.emit(call_draw(node.op_type, tuple(attributes.get("shape", ())), dtype, self._made))

    def _by_hand(self, node: onnx.NodeProto, operands: list[Value]) -> list[Value]:
        """The results of a kernel written by hand; a function of the model with its name is what it stands for."""
        given = [value.expr if isinstance(value, Known) else value for value in operands]
        call = self._state.bb.emit(call_by_hand(node.op_type, given))
        if not isinstance(call.ty, relax.TupleType):
            return [call]
        return [self._state.bb.emit(relax.TupleGetItem(call, at)) for at in range(len(call.ty.fields))]

    def _control_flow(
        self, node: onnx.NodeProto, operands: list[Value], origin: Origin, opset: int, is_whole: bool
    ) -> list[Value]:
        def run(graph: onnx.GraphProto, values: list[Value], suffix: str) -> list[Value]:
            with self._scopes.inner():
                for proto in graph.initializer:
                    bind_array(self._state, proto.name, array_of(proto), is_weight=False)
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
                begun = len(self._operators)
                try:
                    return unroll_loop(node, operands, run, make)
                except NotUnrolledError as error:
                    del self._operators[begun:]  # of rounds that were begun
                    return self._loop(node, operands, origin, opset, f"{error}, so it runs as a loop")
            case _:
                return unroll_scan(node, operands, run, make, opset)

    def _loop(
        self, node: onnx.NodeProto, operands: list[Value], origin: Origin, opset: int, reason: str
    ) -> list[Value]:
        """The results of a loop that is one call, its body imported as a function of its own."""
        try:
            loop = run_time_loop(node, operands, self._scopes)
        except ModelError:
            inputs = self._scopes.needs(*read_names([node]))
            if not self._can_be_given(inputs):
                raise
            unknown = [name for name in value_operands(node) if self._scopes.known(name) is None]
            raise needs_values(origin, (*unknown, graph_of(node, "body").output[0].name)[0], inputs) from None
        inner = Importer(dict(loop.shapes), {}, dict(loop.known), None, self._functions, self._state.producer)
        mod, weights = inner.import_graph(loop.graph, {}, opset)
        body = bind_params(mod, weights)["main"] if weights else mod["main"]
        check_states(loop, results_of(body))
        operators = [Origin(f"{origin.name}/{one.name}", one.op) for one in inner._operators]
        self._operators += operators
        body = body.with_attr(OPERATORS_ATTR, [one.encode() for one in operators])
        trips, condition = (self._state.bb.emit(value) for value in (loop.trips, loop.condition))
        call = self._state.bb.emit(call_loop(body, trips, condition, loop.states, loop.read, reason))
        return [self._state.bb.emit(relax.TupleGetItem(call, at)) for at in range(len(loop.states))]

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
        # what a graph of the node reads from outside it, such as SequenceMap's body, is read inside the function
        given |= {name: name for name in read_names([node]) - set(node.input) if name in self._scopes}
        bound = {name: self._scopes[outer] for name, outer in given.items()}
        bound |= {name: self._scopes[""] for name in body.input if name not in given}
        needs = {name: self._scopes.needs(given.get(name, "")) for name in bound}
        with self._scopes.inner(isolated=True):
            for name, value in bound.items():
                self._scopes.bind(name, value, needs[name])
            self._walk(bound_body(body, node, opset), list(body.output), inner_opset, origin, "")
            results = [self._scopes.get(name) for name in body.output]  # some bodies leave out optional outputs
            reached = [self._scopes.needs(name) for name in body.output]
        for name, value, needed in zip(node.output, results, reached, strict=False):
            self._scopes.bind(name, value, needed)

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


def _bits(value: Value, dtype: str) -> Value:
    """The bits of a tensor as numbers of another dtype of the same width."""
    return Known(value.array.view(dtype)) if isinstance(value, Known) else call_bits(value, dtype)
