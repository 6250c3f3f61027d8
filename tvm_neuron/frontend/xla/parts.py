"""split: a program for several devices, in parts between its exchanges: an ONNX model for each, and the plan.

A part holds the operators of one level: those that follow as many exchanges on the longest way to them. What every
device computes alike (of tensors that all have) is a part of its own, which runs once for all. What follows from
constants is in each part that needs it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tvm_neuron.frontend.graph import Graph, Shape, model_of, tensor_type
from tvm_neuron.frontend.xla.scope import Cores, Types
from tvm_neuron.neff import TensorInfo
from tvm_neuron.spmd import Join, Plan, Run
from tvm_neuron.spmd.plan import Step

Level = tuple[int, bool]
"""How many exchanges come before, and whether each device has values of its own."""

_FIRST: Level = (0, False)


@dataclass
class Parts:
    """A model for each part, and the plan in which they are numbered; its instance is still open."""

    models: list[onnx.ModelProto]
    plan: Plan


@dataclass
class _Part:
    """The nodes of a level, and what they are to give to others."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    outputs: dict[str, None] = field(default_factory=dict)


def split(graph: Graph, cores: Cores, inputs: Types, results: Sequence[str], outputs: Sequence[TensorInfo]) -> Parts:
    """`inputs` are the program's, `results` the tensors that its `outputs` are."""
    nodes = _needed(graph.nodes, results)
    made = {name: node for node in nodes for name in node.output}
    levels = _levels(nodes, cores, inputs)
    for name in [*results, *(cores.steps[node.output[0]].source for node in nodes if node.output[0] in cores.steps)]:
        levels.setdefault(name, _FIRST)  # of a constant
    parts = defaultdict[Level, _Part](_Part)
    for name in levels.keys() - made.keys() - inputs.keys() - {cores.core}:
        parts[_FIRST].nodes.append(helper.make_node("Identity", [_aside(name)], [name]))
    steps = dict[int, list[Step]]()
    for node in nodes:
        name = node.output[0]
        if name in cores.steps:
            steps.setdefault(levels[name][0], []).append(cores.steps[name])
        elif name in levels:
            parts[levels[name]].nodes.append(node)
    _link(parts, nodes, cores, levels, results)
    read = {name for node in nodes for name in _reads(node)}
    writer, plan_steps = _Writer(graph, dict(inputs) | cores.types, made, levels), list[Step]()
    for level in range(1 + max(number for number, _ in levels.values())):
        plan_steps += [_joined(step, read) for step in steps.get(level, ())]
        for is_local in (False, True):
            if (level, is_local) in parts:
                part = parts[level, is_local]
                given = writer.write(part)
                plan_steps.append(Run(len(writer.models) - 1, given, tuple(part.outputs), not is_local))
    infos = tuple(TensorInfo(name, shape, np.dtype(dtype).name) for name, (shape, dtype) in inputs.items())
    return Parts(
        writer.models, Plan(cores.count, "", infos, tuple(outputs), tuple(results), tuple(plan_steps), cores.core)
    )


def _needed(nodes: Sequence[onnx.NodeProto], results: Iterable[str]) -> list[onnx.NodeProto]:
    """Those of which a result is made."""
    needed, found = set(results), list[onnx.NodeProto]()
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(_reads(node))
            found.append(node)
    return found[::-1]


def _reads(node: onnx.NodeProto) -> set[str]:
    """What a node reads, its bodies among it."""
    found = set(node.input)
    for attribute in node.attribute:
        for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            own = {value.name for value in (*body.input, *body.initializer)}
            own |= {name for inner in body.node for name in inner.output}
            found |= {value.name for value in body.output} | {name for inner in body.node for name in _reads(inner)}
            found -= own
    return found - {""}


def _levels(nodes: Iterable[onnx.NodeProto], cores: Cores, inputs: Iterable[str]) -> dict[str, Level]:
    """Of every tensor but those that follow from constants alone."""
    levels = dict.fromkeys(inputs, _FIRST) | {cores.core: (0, True)}
    for node in nodes:
        before = [levels[name] for name in _reads(node) if name in levels]
        step = cores.steps.get(node.output[0])
        if step is not None:
            levels[node.output[0]] = 1 + max((level for level, _ in before), default=0), not isinstance(step, Join)
        elif before:
            found = max(level for level, _ in before), any(is_local for _, is_local in before)
            levels |= dict.fromkeys(node.output, found)
    return levels


def _link(
    parts: Mapping[Level, _Part], nodes: Iterable[onnx.NodeProto], cores: Cores, levels: Mapping[str, Level],
    results: Iterable[str],
) -> None:  # fmt: skip
    """Notes which tensors leave their parts."""
    home = {name: level for level, part in parts.items() for node in part.nodes for name in node.output}
    for node in nodes:
        is_step = node.output[0] in cores.steps
        for name in sorted(_reads(node)):
            if name in home and (is_step or home[name] != levels.get(node.output[0], home[name])):
                parts[home[name]].outputs[name] = None
    for name in results:
        if name in home:
            parts[home[name]].outputs[name] = None


def _joined(step: Step, read: set[str]) -> Step:
    return replace(step, is_needed=step.target in read) if isinstance(step, Join) else step


def _aside(name: str) -> str:
    """The constant itself, where a tensor of its name is what a part gives."""
    return f"{name}_value"


class _Writer:
    """Writes parts as ONNX models, one after the other, so that the types of what they read are known."""

    def __init__(
        self, graph: Graph, types: dict[str, tuple[Shape, Any]], made: Mapping[str, onnx.NodeProto],
        levels: Mapping[str, Level],
    ) -> None:  # fmt: skip
        self.graph, self.types, self.made, self.levels = graph, types, made, levels
        self.models: list[onnx.ModelProto] = []

    def write(self, part: _Part) -> tuple[str, ...]:
        """Adds its model; the tensors that it takes."""
        inner, given = Graph(), dict[str, None]()
        own = {name for node in part.nodes for name in node.output}
        for node in part.nodes:
            self._bring(sorted(_reads(node)), own, inner, given)
            inner.nodes.append(node)
        inputs = [tensor_type(name, *self.types[name]) for name in given]
        untyped = [onnx.ValueInfoProto(name=name) for name in part.outputs]
        inferred = onnx.shape_inference.infer_shapes(model_of(inner, inputs, untyped), strict_mode=True, data_prop=True)
        outputs = []
        for value in inferred.graph.output:
            shape = tuple(int(size.dim_value) for size in value.type.tensor_type.shape.dim)
            dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            self.types[value.name] = shape, dtype
            outputs.append(tensor_type(value.name, shape, dtype))
        self.models.append(model_of(inner, inputs, outputs))
        return tuple(given)

    def _bring(self, names: Iterable[str], own: set[str], inner: Graph, given: dict[str, None]) -> None:
        """What a node reads is there: of the part, given to it, a constant, or made of constants before it."""
        for name in names:
            constant = self.graph.constants.get(name.removesuffix("_value"))
            if name in own:
                continue
            if name in self.levels and name not in self.graph.constants:
                given[name] = None
            elif constant is not None:
                inner.constants[name] = constant
            else:
                own.update(self.made[name].output)
                self._bring(sorted(_reads(self.made[name])), own, inner, given)
                inner.nodes.append(self.made[name])
