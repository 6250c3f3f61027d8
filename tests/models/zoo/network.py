"""Network: writes an ONNX graph and computes it as it grows, so that random weights can be scaled by what they see."""

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

OPSET = 18
MEAN_REMOVED = 0.2
"""What part of its mean a normalised channel lacks.

With all of it removed, what is left (differences between inputs and rounding errors alike) grows by 1.2 a layer; with
none, hardly anything of the input passes through many layers.
"""

Attribute = int | float | str | Sequence[int] | Sequence[float]


class Network:
    """A graph under construction: values are called by their ONNX names and known for one random input.

    Weights are seeded by the network's name. Every layer with weights is scaled so that what it gives for the random
    input has the root mean square 1, or `gain`.
    """

    def __init__(self, name: str, **inputs: Sequence[int]) -> None:
        self.name = name
        self.rng = np.random.default_rng([*name.encode()])
        self.values: dict[str, NDArray] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, NDArray] = {}
        for input_name, shape in inputs.items():
            self.values[input_name] = self.rng.standard_normal(shape).astype(np.float32)
        self._inputs = tuple(self.values)

    def integers(self, name: str, shape: Sequence[int], below: int) -> str:
        """An int64 input with values in [0, below)."""
        self.values[name] = self.rng.integers(0, below, shape)
        self._inputs += (name,)
        return name

    def constant(self, value: NDArray | Sequence[int] | float, name: str = "constant") -> str:
        """An initializer."""
        array = np.asarray(value)
        unique = f"{name}_{len(self._weights)}"
        self._weights[unique] = array.astype(np.float32) if array.dtype == np.float64 else array
        return unique

    def normal(self, *shape: int, deviation: float = 1.0) -> NDArray:
        """Normal float32 values."""
        return self.rng.standard_normal(shape, dtype=np.float32) * np.float32(deviation)

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Attribute) -> str:
        """Append a node; the name of its first output (the others end in `.1`, `.2`, ...)."""
        name = f"{kind}_{len(self._nodes)}"
        node = helper.make_node(kind, inputs, [name, *(f"{name}.{i}" for i in range(1, outputs))], name, **attributes)
        self._nodes.append(node)
        self.values.update(self._evaluate(node))
        return name

    def shape(self, value: str) -> tuple[int, ...]:
        """The static shape."""
        return self.values[value].shape

    def scaled(
        self, kind: str, value: str, weight: NDArray, bias: str = "", gain: float = 1.0, **attributes: Attribute
    ) -> str:
        """A layer `kind(value, weight[, bias])` with its weight scaled to give the root mean square `gain`."""
        name = self.constant(weight, "weight")
        result = self.op(kind, value, name, **attributes)
        factor = np.float32(gain / np.sqrt(np.mean(np.square(self.values[result]), dtype=np.float64)))
        self._weights[name] *= factor
        self.values[result] *= factor
        if bias:
            self._nodes[-1].input.append(bias)
            self.values.update(self._evaluate(self._nodes[-1]))
        return result

    def model(self, *outputs: str) -> onnx.ModelProto:
        """The model with these outputs; the values are forgotten."""
        graph = helper.make_graph(
            self._nodes, self.name, [self._info(name) for name in self._inputs], [self._info(name) for name in outputs],
            [numpy_helper.from_array(array, name) for name, array in self._weights.items()],
        )  # fmt: skip
        self.values.clear()
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        onnx.checker.check_model(model)
        return model

    def _info(self, name: str) -> onnx.ValueInfoProto:
        array = self.values.get(name, self._weights.get(name))
        if array is None:
            raise KeyError(f"{self.name} has no value '{name}'")
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    def _evaluate(self, node: onnx.NodeProto) -> dict[str, NDArray]:
        given = {name: self.values.get(name, self._weights.get(name)) for name in node.input if name}
        graph = helper.make_graph(
            [node], "one", [self._info(n) for n in given], [onnx.ValueInfoProto(name=n) for n in node.output]
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        results = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
        return dict(zip(node.output, results, strict=True))
