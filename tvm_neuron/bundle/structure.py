"""structural: which constants of a model only shape it: axes, sizes, positions, and what these are computed from."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import onnx

from tvm_neuron.frontend.onnx.graphs import real_inputs
from tvm_neuron.frontend.onnx.needs import value_operands

Value = tuple[int, str]
"""A value by the number of the graph that makes it, and its name there."""
Scope = Mapping[str, Value]

_POSITIONS = {
    "Attention": (6,), "GRU": (4,), "Gather": (1,), "GatherElements": (1,), "GatherND": (1,), "If": (0,), "LSTM": (4,),
    "MaxUnpool": (1,), "NonMaxSuppression": (2,), "RNN": (4,), "RoiAlign": (2,), "RotaryEmbedding": (3,),
    "Scatter": (1,), "ScatterElements": (1,), "ScatterND": (1,), "TensorScatter": (2,),
}  # fmt: skip
"""Operands that say where or how many; beside those that the importer needs to know."""
_OF_SHAPES = ("Shape", "Size")  # whose results tell nothing of the operand's values


def structural(model: onnx.ModelProto, given: Collection[str]) -> Iterator[tuple[onnx.TensorProto, bool]]:
    """Every constant of a model's graphs and functions, and whether it is one that only shapes it.

    It is if it is such an operand, or such an operand is computed from it and from nothing that is known only at run
    time. `given` are the inputs whose values are known when the model is compiled.
    """
    flow = _Flow(model)
    inputs = {flow.main[each.name] for each in real_inputs(model.graph) if each.name not in given}
    readers: dict[Value, set[Value]] = defaultdict(set)
    for value, sources in flow.sources.items():
        for source in sources:
            readers[source].add(value)
    at_run_time = _reached(inputs, readers, set())
    found = _reached(flow.shaping - at_run_time, flow.sources, at_run_time)
    for tensor, values in flow.constants:
        yield tensor, not found.isdisjoint(values)


def _reached(starts: Iterable[Value], onward: Mapping[Value, set[Value]], barred: set[Value]) -> set[Value]:
    found, waiting = set(starts), list(starts)
    while waiting:
        for value in onward.get(waiting.pop(), set()) - barred - found:
            found.add(value)
            waiting.append(value)
    return found


class _Flow:
    """What every value is computed from, across the borders of inner graphs and of the model's functions."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.sources: dict[Value, set[Value]] = defaultdict(set)
        self.shaping: set[Value] = set()
        self.constants: list[tuple[onnx.TensorProto, list[Value]]] = []
        self._graphs = 0
        self._functions = {
            (each.domain, each.name): (each, self._scope({}, each.input, each.node)) for each in model.functions
        }
        for function, scope in self._functions.values():
            self._walk(function.node, scope)
        self.main = self._graph(model.graph, {})

    def _scope(self, outer: Scope, names: Iterable[str], nodes: Iterable[onnx.NodeProto]) -> dict[str, Value]:
        self._graphs += 1
        made = [*names, *(name for node in nodes for name in node.output)]
        return {**outer, **{name: (self._graphs, name) for name in made}}

    def _graph(self, graph: onnx.GraphProto, outer: Scope) -> Scope:
        names = [each.name for each in (*graph.input, *graph.initializer)]
        scope = self._scope(outer, names, graph.node)
        self.constants += [(each, [scope[each.name]]) for each in graph.initializer]
        self._walk(graph.node, scope)
        return scope

    def _walk(self, nodes: Iterable[onnx.NodeProto], scope: Scope) -> None:
        for node in nodes:
            operands = [scope.get(name) if name else None for name in node.input]
            results = [scope[name] for name in node.output]
            at = _POSITIONS.get(node.op_type, ())
            names = [*value_operands(node), *(node.input[n] for n in at if n < len(node.input))]
            self.shaping.update(scope[name] for name in names if name in scope)
            for attribute in node.attribute:
                held = [attribute.t] if attribute.HasField("t") else []
                self.constants += [(tensor, results) for tensor in (*held, *attribute.tensors)]
            graphs = [each.g for each in node.attribute if each.HasField("g")]
            if (node.domain, node.op_type) in self._functions:
                function, inner = self._functions[node.domain, node.op_type]
                self._join(operands, [inner[name] for name in function.input])
                self._join([inner.get(name) for name in function.output], results)
            elif graphs:
                self._enter(node, graphs, operands, results, scope)
            elif node.op_type not in _OF_SHAPES:
                for result in results:
                    self.sources[result].update(operand for operand in operands if operand)

    def _enter(
        self, node: onnx.NodeProto, graphs: Sequence[onnx.GraphProto], operands: list[Value | None],
        results: list[Value], scope: Scope,
    ) -> None:  # fmt: skip
        """If, Loop, Scan: the first value that a Loop's body gives is whether it goes on."""
        for graph in graphs:
            inner = self._graph(graph, scope)
            inputs = [inner[each.name] for each in graph.input]
            outputs = [inner.get(each.name) for each in graph.output]
            first = 1 if node.op_type == "Loop" else 0
            # The oldest form of Scan begins with lengths of sequences.
            self._join(operands[max(0, len(operands) - len(inputs)) :], inputs)
            self._join(outputs[first:], results)
            if node.op_type in ("Loop", "Scan"):
                scanned = next((each.i for each in node.attribute if each.name == "num_scan_inputs"), 0)
                self._join(outputs, inputs[first : len(inputs) - scanned])
            for result in results:  # depends on how often it runs, and whether it goes on, or which of the graphs it is
                self.sources[result].update(each for each in operands[: 1 + first] if each)

    def _join(self, givers: Sequence[Value | None], takers: Sequence[Value]) -> None:
        for giver, taker in zip(givers, takers, strict=False):
            if giver:
                self.sources[taker].add(giver)
