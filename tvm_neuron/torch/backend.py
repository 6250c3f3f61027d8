"""The backend "neuron" of `torch.compile`: graphs are compiled when they are first called with shapes of a kind."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tvm_neuron.errors import ModelError
from tvm_neuron.torch.frozen import Frozen
from tvm_neuron.torch.graphs import GraphReport, note
from tvm_neuron.torch.parts import in_parts
from tvm_neuron.torch.program import Program

Key = tuple[Any, ...]


class Neuron:
    """One graph of Dynamo; weights are constants of what is compiled, which is done again after they were changed."""

    def __init__(self, graph: torch.fx.GraphModule, target: Any) -> None:
        self._graph = graph
        self._target = target
        self._compiled: dict[Key, tuple[Key, Callable[..., Any]]] = {}
        self._frozen = Frozen(graph)

    def __call__(self, *args: Any) -> Any:
        """What the graph gives for these arguments."""
        weights, others = self._frozen.split(args)
        shapes = tuple((tuple(arg.shape), arg.dtype) if isinstance(arg, torch.Tensor) else arg for arg in others)
        versions = tuple((weight.data_ptr(), weight._version) for weight in weights)
        known = self._compiled.get(shapes)
        if known is None or known[0] != versions:
            known = versions, self._compile(weights, others)
            self._compiled[shapes] = known
        with torch.no_grad():
            return known[1](*others)

    def _compile(self, weights: Sequence[torch.Tensor], others: Sequence[Any]) -> Callable[..., Any]:
        graph = self._frozen.with_weights(weights)
        shapes = tuple(tuple(arg.shape) for arg in others if isinstance(arg, torch.Tensor))
        try:
            whole = Program(graph, others, self._target)
        except ModelError:
            parts, compiled, in_torch = in_parts(graph, others, self._target)
            note(GraphReport(shapes, tuple(part.report for part in compiled), in_torch))
            return parts
        note(GraphReport(shapes, (whole.report,), {}))
        return whole


def neuron(
    graph: torch.fx.GraphModule, _example_inputs: Sequence[Any], *, options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """`torch.compile(model, backend="neuron", options={"target": "neuron/inf2"})`: for inference, without gradients.

    Graph breaks are Dynamo's. What can't be imported of a graph stays in torch; `tvm_neuron.torch.graphs()` tells what
    became of each. The options of the build are those of the enclosing `tvm_neuron.build_options`.
    """
    known = {"target"}
    unknown = sorted(set(options or {}) - known)
    if unknown:
        raise ModelError(f"torch.compile's options {', '.join(unknown)}: the backend 'neuron' has only 'target'")
    return Neuron(graph, (options or {}).get("target", "neuron"))
