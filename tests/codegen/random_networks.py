"""Random small networks: odd channel counts, strides, groups, dilations, paddings, branches that join again."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.onnx_models import Arrays, make_model

Shape = tuple[int, int, int, int]
_CHANNELS = (1, 3, 8, 13, 20, 32, 33, 48, 64, 96, 128, 130, 160, 200, 256)


@dataclass
class RandomNetwork:
    """Grows a network operator by operator; values keep a size of about one."""

    seed: int
    operators: int = 5
    largest: int = 15  # rows and columns
    channels: tuple[int, ...] = _CHANNELS
    batch: int | None = None  # drawn if not given; the rest of the network is the same with any
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: Arrays = field(default_factory=dict)
    values: dict[str, Shape] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        height, width = (int(extent) for extent in self.rng.integers(max(3, self.largest // 3), self.largest, 2))
        batch = int(self.rng.choice([1, 1, 2, 3]))
        self.input: Shape = (self.batch or batch, self._channels(), height, width)
        self.values["x"] = self.input
        steps = [
            self.conv, self.conv, self.depthwise, self.relu, self.batch_norm, self.max_pool, self.average_pool,
            self.add, self.concat, self.shuffle, self.sigmoid, self.lrn, self.scale, self.split,
        ]  # fmt: skip
        last = "x"
        for _ in range(self.operators):
            step = steps[self.rng.integers(len(steps))]
            last = step(last) or last
        last = self._end(last)
        self.output = last

    def model(self) -> onnx.ModelProto:
        """The network as an ONNX model."""
        return make_model(self.nodes, {"x": self.input}, [self.output], self.weights)

    def inputs(self) -> Arrays:
        """A random input."""
        return {"x": np.random.default_rng([self.seed, 1]).standard_normal(self.input).astype(np.float32)}

    def _channels(self) -> int:
        return int(self.rng.choice(self.channels))

    def _weight(self, *shape: int, scale: float = 1.0) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = (self.rng.standard_normal(shape) * scale).astype(np.float32)
        return name

    def _positive(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = self.rng.uniform(0.5, 1.5, shape).astype(np.float32)
        return name

    def _node(self, op: str, inputs: list[str], shape: Shape, **attributes: object) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        self.values[name] = shape
        return name

    def _window(self, shape: Shape, may_dilate: bool) -> tuple[dict[str, Any], tuple[int, int]]:
        """Attributes of a window that fits, and the size it leaves."""
        kernel, strides, dilations, before, after, size = [], [], [], [], [], []
        for extent in shape[2:]:
            k = int(self.rng.choice([1, 2, 3, 3, 5]))
            d = int(self.rng.choice([1, 1, 2])) if may_dilate else 1
            reach = (k - 1) * d
            pads = [int(self.rng.integers(0, min(reach // d, 2) + 1)) for _ in range(2)]
            if extent + sum(pads) <= reach:
                k, d, reach, pads = 1, 1, 0, [0, 0]
            s = int(self.rng.choice([1, 1, 2, 3]))
            for values, value in ((kernel, k), (strides, s), (dilations, d), (before, pads[0]), (after, pads[1])):
                values.append(value)
            size.append((extent + sum(pads) - reach - 1) // s + 1)
        attributes = {"kernel_shape": kernel, "strides": strides, "pads": before + after}
        return attributes | ({"dilations": dilations} if may_dilate else {}), (size[0], size[1])

    def conv(self, last: str) -> str:
        shape = self.values[last]
        n, c = shape[:2]
        groups = [g for g in (1, 1, 1, 2, 4, 5) if c % g == 0]
        group = int(self.rng.choice(groups))
        out = -(-self._channels() // group) * group
        attributes, size = self._window(shape, may_dilate=True)
        fan_in = c // group * attributes["kernel_shape"][0] * attributes["kernel_shape"][1]
        inputs = [last, self._weight(out, c // group, *attributes["kernel_shape"], scale=fan_in**-0.5)]
        if self.rng.random() < 0.5:
            inputs.append(self._weight(out, scale=0.3))
        return self._node("Conv", inputs, (n, out, *size), group=group, **attributes)

    def depthwise(self, last: str) -> str:
        shape = self.values[last]
        attributes, size = self._window(shape, may_dilate=True)
        kernel = attributes["kernel_shape"]
        weight = self._weight(shape[1], 1, *kernel, scale=float(np.prod(kernel)) ** -0.5)
        return self._node("Conv", [last, weight], (*shape[:2], *size), group=shape[1], **attributes)

    def relu(self, last: str) -> str:
        return self._node("Relu", [last], self.values[last])

    def sigmoid(self, last: str) -> str:
        return self._node(str(self.rng.choice(["Sigmoid", "Tanh"])), [last], self.values[last])

    def batch_norm(self, last: str) -> str:
        c = self.values[last][1]
        inputs = [last, self._positive(c), self._weight(c, scale=0.3), self._weight(c, scale=0.3), self._positive(c)]
        return self._node("BatchNormalization", inputs, self.values[last])

    def scale(self, last: str) -> str:
        shape = [(1, self.values[last][1], 1, 1), (1,), self.values[last][2:]][self.rng.integers(3)]
        op = str(self.rng.choice(["Mul", "Add", "Sub", "Div"]))
        return self._node(op, [last, self._positive(*shape)], self.values[last])

    def max_pool(self, last: str) -> str:
        attributes, size = self._window(self.values[last], may_dilate=False)
        return self._node("MaxPool", [last], (*self.values[last][:2], *size), **attributes)

    def average_pool(self, last: str) -> str:
        attributes, size = self._window(self.values[last], may_dilate=False)
        attributes["count_include_pad"] = int(self.rng.integers(2))
        return self._node("AveragePool", [last], (*self.values[last][:2], *size), **attributes)

    def add(self, last: str) -> str | None:
        same = [name for name, shape in self.values.items() if shape == self.values[last] and name != last]
        other = str(self.rng.choice(same)) if same else self.relu(last)
        return self._node(str(self.rng.choice(["Add", "Mul", "Max"])), [last, other], self.values[last])

    def concat(self, last: str) -> str:
        shape = self.values[last]
        fitting = [n for n, s in self.values.items() if (s[0], *s[2:]) == (shape[0], *shape[2:])]
        others = [str(name) for name in self.rng.choice(fitting, int(self.rng.integers(1, 3)))]
        channels = shape[1] + sum(self.values[name][1] for name in others)
        return self._node("Concat", [last, *others], (shape[0], channels, *shape[2:]), axis=1)

    def split(self, last: str) -> str | None:
        shape = self.values[last]
        if shape[1] < 2:
            return None
        first = int(self.rng.integers(1, shape[1]))
        for name, values in (("starts", [first]), ("ends", [shape[1]]), ("axes", [1])):
            self.weights[f"{name}{len(self.nodes)}"] = np.array(values)
        ends = [f"{name}{len(self.nodes)}" for name in ("starts", "ends", "axes")]
        return self._node("Slice", [last, *ends], (shape[0], shape[1] - first, *shape[2:]))

    def shuffle(self, last: str) -> str | None:
        n, c, h, w = self.values[last]
        groups = [g for g in (2, 4, 5) if c % g == 0]
        if not groups:
            return None
        group = int(self.rng.choice(groups))
        self.weights[f"five{len(self.nodes)}"] = np.array([n, group, c // group, h, w])
        self.weights[f"four{len(self.nodes)}"] = np.array([n, c, h, w])
        four = f"four{len(self.nodes)}"
        last = self._node("Reshape", [last, f"five{len(self.nodes)}"], (n, c, h, w))
        self.values.pop(last)
        last = self._node("Transpose", [last], (n, c, h, w), perm=[0, 2, 1, 3, 4])
        self.values.pop(last)
        return self._node("Reshape", [last, four], (n, c, h, w))

    def lrn(self, last: str) -> str:
        size = int(self.rng.choice([3, 5]))
        return self._node("LRN", [last], self.values[last], size=size, alpha=0.4, beta=0.75, bias=1.0)

    def _end(self, last: str) -> str:
        """Perhaps a classifier: pooled or flattened, a matrix product, a softmax."""
        choice = self.rng.integers(4)
        n, c, h, w = self.values[last]
        if choice == 0 or not self.nodes:
            return self.relu(last)
        if choice == 1:
            return last
        if choice == 2:
            last = self._node("GlobalAveragePool", [last], (n, c, 1, 1))
            h = w = 1
        out = int(self.rng.choice([3, 10, 150]))
        last = self._node("Flatten", [last], (n, c, h, w))
        weights = [self._weight(out, c * h * w, scale=(c * h * w) ** -0.5), self._weight(out)]
        last = self._node("Gemm", [last, *weights], (n, out, 1, 1), transB=1)
        return self._node("Softmax", [last], (n, out, 1, 1), axis=1) if self.rng.random() < 0.6 else last
