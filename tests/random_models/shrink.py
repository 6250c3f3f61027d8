"""Makes a model that fails smaller, as long as it fails in the same way."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import onnx

from tests.random_models.model import RandomModel, pruned


def shrunk(model: RandomModel, still_fails: Callable[[RandomModel], bool], tries: int = 100) -> RandomModel:
    """The smallest found by giving fewer outputs, and tensors as inputs instead of the nodes that make them."""
    while True:
        for smaller in _smaller(model):
            if smaller is model:
                continue
            tries -= 1
            if tries < 0:
                return model
            if still_fails(smaller):
                model = smaller
                break
        else:
            return model


def _smaller(model: RandomModel) -> Iterator[RandomModel]:
    """First one output of several, then without many nodes, then without few."""
    if len(model.outputs) > 1:
        for name in model.outputs:
            yield pruned(replace(model, outputs=(name,)))
        if len(model.outputs) > 2:
            for name in model.outputs:
                yield pruned(replace(model, outputs=tuple(other for other in model.outputs if other != name)))
    nodes, size = model.nodes, len(model.nodes) // 2
    while size:
        for begin in range(0, len(nodes), size):
            yield _without(model, nodes[begin : begin + size])
        size //= 2
    for node in reversed(nodes[:-1]):
        if len(model.outputs) == 1:
            yield pruned(replace(model, outputs=(node.output[0],)))


def _without(model: RandomModel, gone: Sequence[onnx.NodeProto]) -> RandomModel:
    """The nodes' results are inputs, or constants where they were known."""
    kept = tuple(node for node in model.nodes if node not in gone)
    made = {name for node in kept for name in node.output}
    outputs = tuple(name for name in model.outputs if name in made)
    if not outputs:
        return model
    read = {name for node in kept for name in node.input}
    lost = [name for node in gone for name in node.output]
    new = tuple(name for name in lost if name in read and not model.values[name].is_constant)
    return pruned(replace(model, nodes=kept, inputs=(*model.inputs, *new), outputs=outputs))
