"""RandomModel: an ONNX model drawn from a seed, inputs for it, its results and how far rounding may move them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tests.random_models.evaluate import IR_VERSION, tensor_info
from tests.random_models.growth import MOST_ELEMS, Growth
from tests.random_models.steps import ALL, NUMBERS
from tests.random_models.value import Value

_OPSETS = (13, 15, 17, 18, 18, 19, 20, 21, 22, 23)
_MODES = ("all", "all", "all", "none", "none", "matmult", "matmult-fp16", "all-fp16")
_FLOATS = ("float32", "float32", "float32", "float32", "float32", "float32", "float16")
_NUMBERS = 0.3
"""Of the models that have only steps with numbers."""
_CONSTANT_OUTPUTS = 0.3
_LEFT = 0.2
"""Of the results of nodes with several that no other node reads: nobody reads them."""
_TRIES = 8


@dataclass(frozen=True)
class RandomModel:
    """`values` has every tensor of the model; what it computes of its inputs are those named `outputs`."""

    opset: int
    mode: str
    nodes: tuple[onnx.NodeProto, ...]
    values: Mapping[str, Value]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def proto(self) -> onnx.ModelProto:
        """The model; initializers are the tensors that neither a node makes nor an input gives."""
        made = {name for node in self.nodes for name in node.output} | set(self.inputs)
        read = dict.fromkeys(name for node in self.nodes for name in node.input if name and name not in made)
        graph = helper.make_graph(
            list(self.nodes),
            "random",
            [tensor_info(name, self.values[name].exact) for name in self.inputs],
            [tensor_info(name, self.values[name].exact) for name in self.outputs],
            [numpy_helper.from_array(np.asarray(self.values[name].exact), name) for name in read],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR_VERSION)

    def feeds(self) -> dict[str, NDArray]:
        """The inputs."""
        return {name: self.values[name].exact for name in self.inputs}


def random_model(seed: int, largest: int = 14) -> RandomModel:
    """The model of a seed: up to `largest` steps, of one or a few nodes each."""
    rng = np.random.default_rng([seed, 16])
    g = Growth(rng, str(rng.choice(_FLOATS)), int(rng.choice(_OPSETS)), str(rng.choice(_MODES)))
    _begin(g)
    families = NUMBERS if np.random.default_rng([seed, 17]).random() < _NUMBERS else ALL
    weights = np.array([weight for weight, _ in families], float)
    for _ in range(g.draw(1, largest)):
        for _ in range(_TRIES):
            steps = families[int(rng.choice(len(families), p=weights / weights.sum()))][1]
            g.folding = g.chance(0.15)
            before = len(g.nodes)
            if g.attempt(g.one_of(steps)) and len(g.nodes) > before:
                break
    g.folding = False
    if not g.nodes:
        g.add("Identity", g.input(g.random([2, 3], g.main_float)))
    return _finished(g)


def _begin(g: Growth) -> None:
    rank = g.one_of([4, 4, 4, 3, 3, 2, 2, 1, 5, 0])
    extents = {4: [1, 2, 3, 5, 8, 14], 5: [1, 2, 3, 4]}.get(rank, [1, 2, 4, 7, 16, 33, 64])
    shape = [g.one_of(extents) for _ in range(rank)]
    while np.prod(shape) > MOST_ELEMS:
        shape[g.draw(0, rank - 1)] = 1
    g.input(g.random(shape, g.main_float))
    if g.chance(0.5):
        dtype = g.one_of(["int32", "int64", "bool", "uint8", "int8", g.main_float])
        shape = g.values["x1"].shape if g.chance(0.5) else [g.one_of([1, 2, 3, 5, 8]) for _ in range(g.draw(0, 4))]
        g.input(g.random(shape, dtype))


def _finished(g: Growth) -> RandomModel:
    """Results that no node reads are outputs, of those known at compile time some, and sometimes another tensor."""
    read = {name for node in g.nodes for name in node.input}
    made = [name for node in g.nodes for name in node.output]
    left = {name for node in g.nodes if len(node.output) > 1 for name in node.output if g.chance(_LEFT)}
    last = [name for name in made if name not in read | left]
    outputs = [n for n in last if not g.values[n].is_constant or g.chance(_CONSTANT_OUTPUTS)]
    if g.chance(0.2) or not outputs:
        outputs += [name for name in [g.one_of(made)] if name not in outputs]
    return pruned(RandomModel(g.opset, g.mode, tuple(g.nodes), g.values, tuple(g.inputs), tuple(outputs)))


def pruned(model: RandomModel) -> RandomModel:
    """Without the nodes and inputs that no output needs."""
    needed, nodes = set(model.outputs), []
    for node in reversed(model.nodes):
        if needed & set(node.output):
            needed.update(node.input)
            nodes.insert(0, node)
    inputs = tuple(name for name in model.inputs if name in needed)
    return RandomModel(model.opset, model.mode, tuple(nodes), model.values, inputs, model.outputs)
