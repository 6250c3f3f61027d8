"""TVM's ONNX importer, one node at a time, so that each Relax call knows the ONNX node it came from."""

import contextlib
import io
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import tvm
from onnx import numpy_helper
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.match_cast import unnest_match_casts
from tvm_neuron.frontend.onnx.batch import Batch, fix_reshape_target
from tvm_neuron.frontend.onnx.converters import CONVERTERS, Node
from tvm_neuron.frontend.origin import (
    OPERATORS_ATTR,
    OUTPUTS_ATTR,
    Origin,
    bindings_of,
    rewrite_bindings,
    with_origin,
)

_LARGEST_EMBEDDED_ELEMS = 16
"""Initializers up to this size are embedded as constants: operators read them as attributes (pads, axes, scales)."""


def node_origins(nodes: list[onnx.NodeProto]) -> list[Origin]:
    """One origin per node; nodes without a name, or with one already taken, are named `<op type>_<index>`."""
    taken: set[str] = set()
    origins = []
    for index, node in enumerate(nodes):
        name = node.name if node.name and node.name not in taken else f"{node.op_type}_{index}"
        while name in taken:
            name += "_"
        taken.add(name)
        origins.append(Origin(name, node.op_type))
    return origins


class NodeByNodeImporter(ONNXGraphImporter):
    """Imports a graph and tags every call with its node.

    Parameters: `shapes` and `dtypes` by input name, `batch` the change of the batch size if the caller made one.
    Weights (floating initializers of more than 16 elements) become inputs of `main` after the model's own;
    all other initializers are embedded, since operators read them at compile time.
    """

    def __init__(self, shapes: dict[str, tuple[int, ...]], dtypes: dict[str, str], batch: Batch | None) -> None:
        super().__init__(shapes, dtypes, keep_params_in_input=True, sanitize=False)
        self._batch = batch
        self._operators: list[Origin] = []
        self._ends: dict[relax.Var, Origin] = {}
        self._known: set[relax.Var] = set()
        self._weights: dict[str, tvm.runtime.Tensor] = {}

    def import_graph(self, graph: onnx.GraphProto, opset: int) -> tuple[tvm.IRModule, dict[str, tvm.runtime.Tensor]]:
        """The module, whose `main` takes the inputs and then the weights, and the weights by name."""
        self._operators = node_origins(list(graph.node))
        mod = self.from_onnx(graph, opset)
        main = self._tag(unnest_match_casts(mod["main"]))
        attrs = {
            OPERATORS_ATTR: [origin.encode() for origin in self._operators],
            OUTPUTS_ATTR: [output.name for output in graph.output],
        }
        mod["main"] = main.without_attr("params").with_attrs(attrs)
        return mod, self._weights

    def _parse_graph_initializers(self, graph: onnx.GraphProto) -> None:
        read = {name for node in graph.node for name in node.input} | {output.name for output in graph.output}
        for proto in graph.initializer:
            if proto.name not in read:
                self._nodes[proto.name] = relax.const(0)
                continue
            array = numpy_helper.to_array(proto)
            tensor = tvm.runtime.tensor(array)
            is_floating = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
            if not is_floating or math.prod(array.shape) <= _LARGEST_EMBEDDED_ELEMS:
                self._nodes[proto.name] = relax.const(tensor)
                continue
            var = self._new_var(proto.name, shape=array.shape, dtype=array.dtype.name)
            self._nodes[proto.name] = var
            self._params[proto.name] = (var, tensor)
            self._weights[proto.name] = tensor

    def _parse_graph_input(self, graph: onnx.GraphProto) -> None:
        super()._parse_graph_input(graph)
        for name in self._params:  # models of IR version 3 list their initializers as inputs too
            self._inputs.pop(name, None)

    def _construct_nodes(self, graph: onnx.GraphProto) -> None:
        self._known = {value for value in self._nodes.values() if isinstance(value, relax.Var)}
        for node, origin in zip(graph.node, self._operators, strict=True):
            if self._batch is not None:
                node = self._fix_batch(node, origin)
            self._construct_node(node, origin)
            for name in node.output:
                self._emit_output(name, origin)

    def _construct_node(self, node: onnx.NodeProto, origin: Origin) -> None:
        printed = io.StringIO()  # TVM prints the operands, weights and all, before it raises
        try:
            with contextlib.redirect_stdout(printed):
                super()._construct_nodes(SimpleNamespace(node=[node]))
        except ModelError:
            raise
        except Exception as error:
            reason = next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
            raise ModelError(f"operator '{origin.name}' ({origin.op}) can't be imported: {reason.strip()}") from error

    def _convert_operator(self, op_name: str, inputs: list[Any], attrs: dict[str, Any], opset: int) -> relax.Expr:
        converted = CONVERTERS[op_name](Node(self.bb, list(inputs), attrs, opset)) if op_name in CONVERTERS else None
        if converted is not None:
            return self.bb.normalize(converted)
        return super()._convert_operator(op_name, inputs, attrs, opset)

    def _emit_output(self, name: str, origin: Origin) -> None:
        """Bind the value of output `name`, and note that the node's calls end there."""
        value = self._nodes.get(name)
        if isinstance(value, relax.Call | relax.TupleGetItem) and isinstance(value.ty, relax.TensorType):
            value = self._nodes[name] = self.bb.emit(value)
        if isinstance(value, relax.Var) and value not in self._known:
            self._known.add(value)
            self._ends[value] = origin

    def _fix_batch(self, node: onnx.NodeProto, origin: Origin) -> onnx.NodeProto:
        assert self._batch is not None
        if not self._batch.reaches(node) or node.op_type != "Reshape":
            return node
        data, target = self._nodes[node.input[0]], self._nodes[node.input[1]]
        if not isinstance(target, tvm.ir.GenericConst) or not isinstance(data.ty.shape, relax.ShapeExpr):
            return node
        shape = tuple(int(dim) for dim in data.ty.shape)
        fixed = fix_reshape_target(shape, tuple(target.value.numpy().tolist()), self._batch, origin)
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[1] = f"{node.output[0]}.neuron_shape"
        self._nodes[copy.input[1]] = relax.const(np.array(fixed, dtype="int64"))
        return copy

    def _tag(self, main: relax.Function) -> relax.Function:
        """All bindings up to the last output of a node belong to that node."""
        origins: dict[relax.Var, Origin] = {}
        waiting: list[relax.Var] = []
        last = self._operators[-1] if self._operators else Origin("main", "main")
        for binding in bindings_of(main):
            waiting.append(binding.var)
            if binding.var in self._ends:
                last = self._ends[binding.var]
                origins.update(dict.fromkeys(waiting, last))
                waiting.clear()
        origins.update(dict.fromkeys(waiting, last))

        def rewrite(binding: relax.Binding) -> relax.Binding:
            if isinstance(binding, relax.VarBinding) and isinstance(binding.value, relax.Call | relax.If):
                return relax.VarBinding(binding.var, with_origin(binding.value, origins[binding.var]))
            return binding

        return rewrite_bindings(main, rewrite)
