"""The nine light networks of the onnx package, with weights under which their numbers mean something.

As shipped, every weight of a network is one repeated value, so its outputs are the same whatever the input. Here
each gets seeded random weights by its role, scaled so that activations keep their size through the network.
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from tvm_neuron.errors import ModelError

_TUNING = {
    "bvlc_alexnet": (0.25, 0.37),
    "densenet121": (1.0, 1.4),
    "inception_v1": (0.6, 170.0),
    "inception_v2": (1.0, 0.3),
    "resnet50": (1.0, 54.0),
    "shufflenet": (1.0, 14.0),
    "squeezenet": (0.6, 6.8),
    "vgg19": (0.25, 0.34),
    "zfnet512": (0.25, 3.0),
}
"""What part of its mean each filter lacks, and the variance of the last layer's weights over the usual.

A filter with its whole mean hardly sees past the mean of a rectified operand, the same for every input; without any,
what is left (differences between inputs and rounding errors alike) grows by 1.2 a layer. The variance was measured so
that the logits' standard deviation is about 2.
"""

LIGHT_NETWORKS = tuple(_TUNING)

_FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
_PASSES_THROUGH = {"MaxPool", "AveragePool", "GlobalAveragePool", "LRN", "Dropout", "Reshape", "Transpose", "Concat"}
_BRANCH_GAIN = 0.3  # of what is added to a residual stream, so that a sum of many blocks does not grow

Fill = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def light_network(name: str, seed: int = 0, batch: int = 1) -> onnx.ModelProto:
    """The light network `name` (with or without `light_` and `.onnx`) with random weights.

    Its input is named as in the file; [1, 3, 224, 224] float32, or `batch` images, which also sets the batch of
    the targets of Reshape operators. The weights depend on the network and `seed` alone.
    """
    short = name.removeprefix("light_").removesuffix(".onnx")
    if short not in LIGHT_NETWORKS:
        raise ModelError(f"no light network '{name}'; there are: {', '.join(LIGHT_NETWORKS)}")
    model = onnx.load(_FOLDER / f"light_{short}.onnx")
    _randomize(model.graph, np.random.default_rng([seed, *short.encode()]), *_TUNING[short])
    if batch != 1:
        _set_batch(model.graph, batch)
    return model


def _randomize(graph: onnx.GraphProto, rng: np.random.Generator, mean_removed: float, logit_gain: float) -> None:
    """Replace every weight: the outputs of ConstantOfShape nodes, and the floating initializers."""
    initializers = {proto.name: proto for proto in graph.initializer}
    generated = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    shapes = {n.output[0]: tuple(numpy_helper.to_array(initializers[n.input[0]]).tolist()) for n in generated}
    shapes |= {p.name: tuple(p.dims) for p in graph.initializer if p.data_type == onnx.TensorProto.FLOAT}
    roles = _Roles(graph, mean_removed, logit_gain)
    read = {name for node in graph.node for name in node.input}
    unread = {proto.name for proto in graph.initializer} - read
    shapes = {name: shape for name, shape in shapes.items() if name not in unread}
    dropped = {node.input[0] for node in generated} | set(shapes) | unread
    kept = [proto for proto in graph.initializer if proto.name not in dropped]
    filled = [
        numpy_helper.from_array(roles.fill(name, shape)(rng, shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    inputs = [value for value in graph.input if value.name not in initializers]
    for field, values in ((graph.initializer, kept + filled), (graph.node, nodes), (graph.input, inputs)):
        del field[:]
        field.extend(values)


class _Roles:
    """How each weight is used, from the nodes that read it."""

    def __init__(self, graph: onnx.GraphProto, mean_removed: float, logit_gain: float) -> None:
        self._mean_removed = mean_removed
        self._logit_gain = logit_gain
        self._readers = {name: (node, i) for node in graph.node for i, name in enumerate(node.input)}
        self._makers = {name: node for node in graph.node for name in node.output}
        self._last = graph.output[0].name

    def fill(self, weight: str, shape: tuple[int, ...]) -> Fill:
        """The distribution of the weight called `weight`."""
        node, position = self._readers.get(weight, (None, 0))
        while node is not None and node.op_type in ("Unsqueeze", "Reshape"):
            node, position = self._readers[node.output[0]]
        match (node.op_type if node is not None else "", position):
            case ("Conv" | "Gemm", 1):
                return _filters(self._gain(node), self._mean_removed)
            case ("BatchNormalization", 1):
                return _uniform(0.5, 1.5, self._branch_gain(node) / math.sqrt(1.19))  # 1.19 = E[scale^2] * E[1 / var]
            case ("BatchNormalization", 4):
                return _uniform(0.5, 1.5)
            case ("Mul", _):
                return _uniform(0.5, 1.5, 1 / math.sqrt(1.083))  # 1.083 = E[scale^2]
            case _:
                return _normal(0.1**2)

    def _gain(self, node: onnx.NodeProto) -> float:
        """What keeps the variance: a rectified normal operand has variance 0.341 and squared mean 0.159."""
        gain = 1 / (0.341 + 0.159 * (1 - self._mean_removed) ** 2) if self._is_rectified(node.input[0]) else 1.0
        return gain * self._logit_gain if self._is_last(node.output[0]) else gain

    def _is_rectified(self, value: str) -> bool:
        node = self._makers.get(value)
        while node is not None and node.op_type in _PASSES_THROUGH:
            node = self._makers.get(node.input[0])
        return node is not None and node.op_type == "Relu"

    def _is_last(self, value: str) -> bool:
        """Whether only operators without weights lie between `value` and the output."""
        while value != self._last:
            node, _ = self._readers[value]
            if node.op_type not in _PASSES_THROUGH | {"Softmax", "Relu"}:
                return False
            value = node.output[0]
        return True

    def _branch_gain(self, node: onnx.NodeProto) -> float:
        reader, _ = self._readers.get(node.output[0], (None, 0))
        return _BRANCH_GAIN if reader is not None and reader.op_type == "Sum" else 1.0


def _normal(variance: float) -> Fill:
    return lambda rng, shape: rng.standard_normal(shape, dtype=np.float32) * np.float32(math.sqrt(variance))


def _filters(gain: float, mean_removed: float) -> Fill:
    """Filters [K, ...] of variance `gain` / fan-in, each without a part of its mean."""

    def fill(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        weights = _normal(gain / math.prod(shape[1:]))(rng, shape)
        return weights - mean_removed * weights.mean(axis=tuple(range(1, len(shape))), keepdims=True)

    return fill


def _uniform(low: float, high: float, factor: float = 1.0) -> Fill:
    return lambda rng, shape: rng.uniform(low, high, shape) * factor


def _set_batch(graph: onnx.GraphProto, batch: int) -> None:
    """Inputs, outputs and reshape targets of a light network for another batch than 1."""
    for value in [*graph.input, *graph.output]:
        value.type.tensor_type.shape.dim[0].dim_value = batch
    del graph.value_info[:]
    targets = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for proto in graph.initializer:
        if proto.name in targets and (target := numpy_helper.to_array(proto))[0] == 1:
            proto.CopyFrom(numpy_helper.from_array(np.array([batch, *target[1:]]), proto.name))
