"""Batch norms, as XLA has them: with statistics of the batch or given ones, and their gradients."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tvm_neuron.frontend.xla.region import Converter
from tvm_neuron.frontend.xla.scope import Scope, dtype_of, elements, shape_of


class _Norm:
    """What they share: the axes that are summed over, and statistics in a shape that broadcasts to the data."""

    def __init__(self, scope: Scope, op: Any) -> None:
        self.graph, data = scope.graph, op.operands[0]
        shape, self._feature = shape_of(data), int(op.attributes["feature_index"])
        self.axes = [axis for axis in range(len(shape)) if axis != self._feature]
        self.sizes = [size if axis == self._feature else 1 for axis, size in enumerate(shape)]
        self.count = self.constant(elements(shape) / max(shape[self._feature], 1), dtype_of(data))
        self._epsilon = self.constant(float(op.attributes["epsilon"].value), dtype_of(data))
        self.data, *rest = (scope.full(value) for value in op.operands)
        self.given = [
            name if shape_of(value) == shape else scope.reshaped(name, self.sizes)
            for name, value in zip(rest, op.operands[1:], strict=True)
        ]

    def constant(self, value: float, dtype: np.dtype[Any]) -> str:
        """A single number."""
        return str(self.graph.constant(np.asarray(value, dtype)))

    def mean(self, name: str) -> str:
        """Over all but the feature, whose sizes are kept."""
        return str(self.graph.add("ReduceMean", name, self.graph.ints(self.axes))) if self.axes else name

    def sum(self, name: str) -> str:
        """Likewise."""
        return str(self.graph.add("ReduceSum", name, self.graph.ints(self.axes))) if self.axes else name

    def deviation(self, variance: str) -> str:
        """The root of the variance and epsilon."""
        return str(self.graph.add("Sqrt", self.graph.add("Add", variance, self._epsilon)))

    def normalised(self, centred: str, variance: str, scale: str, offset: str) -> str:
        """The result of all that have one."""
        found = self.graph.add("Div", centred, self.deviation(variance))
        return str(self.graph.add("Add", self.graph.add("Mul", found, scale), offset))


def _training(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    norm = _Norm(scope, op)
    graph, (scale, offset) = scope.graph, norm.given
    mean = norm.mean(norm.data)
    centred = graph.add("Sub", norm.data, mean)
    variance = norm.mean(graph.add("Mul", centred, centred))
    result, *statistics = op.results
    scope.set(result, norm.normalised(centred, variance, scale, offset))
    for value, name in zip(statistics, (mean, variance), strict=True):
        scope.set(value, scope.reshaped(name, shape_of(value)))


def _inference(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    norm = _Norm(scope, op)
    scale, offset, mean, variance = norm.given
    centred = scope.graph.add("Sub", norm.data, mean)
    scope.set(op.results[0], norm.normalised(centred, variance, scale, offset))


def _grad(scope: Scope, op: Any, _: Mapping[str, Converter]) -> None:
    """Through the statistics too, which are those of the batch."""
    norm = _Norm(scope, op)
    graph, (scale, mean, variance, gradient) = scope.graph, norm.given
    deviation = norm.deviation(variance)
    normalised = graph.add("Div", graph.add("Sub", norm.data, mean), deviation)
    of_scale, of_offset = norm.sum(graph.add("Mul", gradient, normalised)), norm.sum(gradient)
    shared = graph.add("Div", graph.add("Add", of_offset, graph.add("Mul", normalised, of_scale)), norm.count)
    of_data = graph.add("Mul", graph.add("Div", scale, deviation), graph.add("Sub", gradient, shared))
    scope.set(op.results[0], of_data)
    for value, name in zip(op.results[1:], (of_scale, of_offset), strict=True):
        scope.set(value, scope.reshaped(name, shape_of(value)))


CONVERTERS: dict[str, Converter] = {
    "stablehlo.batch_norm_training": _training,
    "stablehlo.batch_norm_inference": _inference,
    "stablehlo.batch_norm_grad": _grad,
}
