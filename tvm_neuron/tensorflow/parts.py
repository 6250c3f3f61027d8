"""A graph that can't be imported as a whole: the largest parts that can, and the rest as TensorFlow runs it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf
import tvm

from tvm_neuron.codegen.options import BuildOptions, current_options
from tvm_neuron.codegen.share import multiplications
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import from_onnx
from tvm_neuron.frontend.tensorflow import Captured, to_onnx
from tvm_neuron.neff import Placement
from tvm_neuron.operators.names import names
from tvm_neuron.profile.report import Report
from tvm_neuron.relay.build_module import build
from tvm_neuron.relay.factory import ExecutorFactory
from tvm_neuron.runtime import report_in_turn

_OURS, _THEIRS = 0, 1
_INPUTS, _CONSTANTS = ("Placeholder",), ("Const",)
_FUNCTIONS = ("If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase", "PartitionedCall")
_NUMBERS = {
    tf.float32, tf.float16, tf.bfloat16, tf.float64, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16,
    tf.uint32, tf.uint64, tf.bool,
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """Operators of one side: a graph in which what it takes of others is a placeholder; a library, if it is ours."""

    graph: Any
    takes: Mapping[str, str]  # the tensors of others, each by the name of its placeholder
    gives: Mapping[str, str]  # the tensors that others read, each by its name in the library
    library: ExecutorFactory | None = None
    multiplications: int = 0  # that it asks for


@dataclass(frozen=True)
class Parts:
    """Those of a graph, in the order in which they run, and what `report` says of all."""

    found: Captured
    specs: Mapping[str, tf.TensorSpec]  # of the inputs and outputs, by tensor
    parts: Sequence[Part]
    report: Report


def compiled(
    found: Captured, shapes: Mapping[str, Sequence[int]], target: Any, options: BuildOptions | None
) -> "ExecutorFactory | Parts":
    """A library for the graph with its inputs of these shapes, or else its parts.

    Raises what `relay.build` raises, and ModelError: see `in_parts`; or the batch is to be open.
    """
    try:
        mod, params = from_onnx(to_onnx(found, shapes))
    except ModelError as error:
        if (options or current_options() or BuildOptions()).dynamic_batch:
            raise
        return in_parts(found, shapes, target, options, error)
    return build(mod, target, params=params, options=options)


def in_parts(
    found: Captured, shapes: Mapping[str, Sequence[int]], target: Any, options: BuildOptions | None, refusal: ModelError
) -> Parts:
    """The parts of a graph of which `refusal` says why it is not taken as a whole.

    Raises the refusal: an input has no shape, or nothing of the graph can be imported.
    """
    graph = _with_shapes(found, shapes)
    whole = tf.Graph()
    try:
        with whole.as_default():
            tf.graph_util.import_graph_def(graph, name="")
    except ValueError:
        raise refusal from None
    if not all(whole.get_tensor_by_name(name).shape.is_fully_defined() for name in found.inputs.values()):
        raise refusal
    try:
        parts, refused = _split(whole, graph, found.outputs.values(), target, options, _Support(graph))
    except ModelError:  # an operator has a form that can't be imported: they are tried one by one
        parts, refused = _split(whole, graph, found.outputs.values(), target, options, _Tried(graph))
    if not any(part.library for part in parts):
        raise refusal
    kept = [Placement(name, whole.get_operation_by_name(name).type, "tensorflow", reason)
            for name, reason in refused.items()]  # fmt: skip
    ends = [*found.inputs.values(), *found.outputs.values()]
    specs = {name: tf.TensorSpec(tensor.shape, tensor.dtype) for name in ends
             for tensor in [whole.get_tensor_by_name(name)]}  # fmt: skip
    ours = [(part.library, part.multiplications) for part in parts if part.library]
    return Parts(found, specs, parts, report_in_turn(ours, kept))


def _split(
    whole: Any, graph: Any, outputs: Iterable[str], target: Any, options: BuildOptions | None, support: "_Support"
) -> tuple[list[Part], dict[str, str]]:
    """The parts, and the operators that are TensorFlow's with the reasons."""
    sides = {op.name: support.side(op) for op in whole.get_operations() if op.type not in (*_INPUTS, *_CONSTANTS)}
    parts = []
    for number, members in sorted(_levels(whole, sides).items()):
        part = _part(whole, graph, members, outputs)
        if number % 2 == _OURS:
            try:
                part = _compiled(part, target, options)
            except ModelError as error:
                if not support.is_last:
                    raise
                support.refused |= dict.fromkeys(members, str(error))
        parts.append(part)
    return parts, support.refused


def _with_shapes(found: Captured, shapes: Mapping[str, Sequence[int]]) -> Any:
    graph = tf.compat.v1.GraphDef()
    graph.CopyFrom(found.graph)
    given = {found.inputs[name].partition(":")[0]: shape for name, shape in shapes.items() if name in found.inputs}
    for node in graph.node:
        node.attr.pop("_output_shapes", None)
        if node.name in given:
            node.attr["shape"].shape.CopyFrom(tf.TensorShape(given[node.name]).as_proto())
    return graph


class _Support:
    """An operator can be imported if tf2onnx knows its name, it works on numbers, and its sizes are known."""

    is_last = False

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._known = {*names("TENSORFLOW")}
        self.refused: dict[str, str] = {}

    def side(self, op: Any) -> int:
        """Whose it is; of TensorFlow's, why is in `refused`."""
        tensors = [*op.inputs, *op.outputs]
        others = {tensor.dtype.base_dtype.name for tensor in tensors if tensor.dtype.base_dtype not in _NUMBERS}
        if others or not op.outputs:
            reason = f"it works on {', '.join(sorted(others)) or 'no tensors'}"
        elif not all(tensor.shape.is_fully_defined() for tensor in tensors):
            reason = "its sizes are known only when it runs"
        else:
            reason = self._reason(op)
        if reason:
            self.refused[op.name] = reason
        return _THEIRS if reason else _OURS

    def _reason(self, op: Any) -> str:
        """Why it can't be imported; "" if it can."""
        is_known = op.type in self._known or op.type in _FUNCTIONS
        return "" if is_known else f"tf2onnx has no converter of {op.type}"


class _Tried(_Support):
    """It can if it can alone, which is tried once for what an operator does to which dtypes and shapes."""

    is_last = True

    def __init__(self, graph: Any) -> None:
        super().__init__(graph)
        self._tried: dict[Any, str] = {}

    def _reason(self, op: Any) -> str:
        key = op.type, str(op.node_def.attr), *((str(each.shape), _constant(each)) for each in op.inputs)
        if key not in self._tried:
            part = _part(op.graph, self._graph, [op.name], [tensor.name for tensor in op.outputs])
            try:
                _imported(part)
                self._tried[key] = ""
            except ModelError as error:
                self._tried[key] = str(error)
        return self._tried[key]


def _constant(tensor: Any) -> bytes | None:
    return tensor.op.node_def.SerializeToString() if tensor.op.type in _CONSTANTS else None


def _levels(whole: Any, sides: Mapping[str, int]) -> dict[int, list[str]]:
    """Operators by how often the way to them goes from one side to the other: even numbers are ours."""
    level: dict[str, int] = {}
    for op in whole.get_operations():
        if op.name in sides:
            side = sides[op.name]
            before = {each.name for each in (*(tensor.op for tensor in op.inputs), *op.control_inputs)} & sides.keys()
            level[op.name] = max((level[name] + (sides[name] != side) for name in before), default=side)
    found: dict[int, list[str]] = {}
    for name, number in level.items():
        found.setdefault(number, []).append(name)
    return found


def _part(whole: Any, graph: Any, members: Sequence[str], outputs: Iterable[str]) -> Part:
    """The operators of these names and the constants that they read."""
    inside = {*members}
    cut = tf.compat.v1.GraphDef(versions=graph.versions, library=graph.library)
    takes: dict[str, str] = {}
    ops = [whole.get_operation_by_name(name) for name in members]
    constants = {tensor.op.name: tensor.op for op in ops for tensor in op.inputs if tensor.op.type in _CONSTANTS}
    for tensor in dict.fromkeys(tensor.ref() for op in ops for tensor in op.inputs):
        source = tensor.deref()
        if source.op.name not in inside and source.op.name not in constants:
            name = source.op.name + (f"/output_{source.value_index}" if source.value_index else "")
            takes[name] = source.name
            node = cut.node.add(name=name, op="Placeholder")
            node.attr["dtype"].type = source.dtype.base_dtype.as_datatype_enum
            node.attr["shape"].shape.CopyFrom(source.shape.as_proto())
    places = {tensor: name for name, tensor in takes.items()}
    for op in (*constants.values(), *ops):
        node = cut.node.add()
        node.CopyFrom(op.node_def)
        del node.input[:]
        node.input.extend(places.get(tensor.name, tensor.name) for tensor in op.inputs)
        node.input.extend(f"^{each.name}" for each in op.control_inputs if each.name in inside)
    wanted = {*outputs} | {
        tensor.name for op in whole.get_operations() if op.name not in inside for tensor in op.inputs
    }
    gives = {tensor.name: tensor.name.removesuffix(":0").replace(":", "/output_")
             for op in ops for tensor in op.outputs if tensor.name in wanted}  # fmt: skip
    return Part(cut, takes, gives)


def _imported(part: Part) -> tuple[tvm.IRModule, Any]:
    inputs = {name: f"{name}:0" for name in part.takes}
    outputs = {name: tensor for tensor, name in part.gives.items()}
    return from_onnx(to_onnx(Captured(part.graph, inputs, outputs)))


def _compiled(part: Part, target: Any, options: BuildOptions | None) -> Part:
    mod, params = _imported(part)
    asked = multiplications(mod["main"])
    return replace(part, library=build(mod, target, params=params, options=options), multiplications=asked)
