"""Images with their channels last are turned once, on their way in, and cost hardly more than their twins."""

import numpy as np
import onnx
import pytest
from onnx import helper

import tvm_neuron
from tests.codegen.graphs import graph_of
from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.build import BuildOptions
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.kernel import Contraction, Kernel, Transposition
from tvm_neuron.schedule.rule import load_rules

FIRST, LAST = [0, 3, 1, 2], [0, 2, 3, 1]
BLOCKS = ((16, 16, 1), (16, 24, 2), (24, 24, 1), (24, 32, 2), (32, 32, 1))  # channels in and out, stride
ROUNDINGS = 16
"""Both operands of each of seven convolutions and of a product are rounded."""


class _Network:
    """Layers, around each of which images are turned ("each"), around the first only ("once") or around none ("no")."""

    def __init__(self, turned: str) -> None:
        self.turned = turned
        self.rng = np.random.default_rng(6)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {"zero": np.float32(0), "six": np.float32(6)}

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def first(self, x: str) -> str:
        return x if self.turned == "no" else self.op("Transpose", x, perm=FIRST)

    def conv(self, x: str, depth: int, channels: int, size: int, stride: int = 1, group: int = 1) -> str:
        if self.turned == "each":
            x = self.first(x)
        name = f"w{len(self.nodes)}"
        weights = self.rng.standard_normal((channels, depth, size, size)).astype(np.float32)
        self.weights[name] = weights / np.float32(np.sqrt(depth * size * size))
        bias = self.rng.standard_normal(channels).astype(np.float32)
        pads = [size // 2] * 4
        y = self.op("Conv", x, name, strides=[stride, stride], group=group, pads=pads, kernel_shape=[size, size])
        y = self.op("Transpose", y, perm=LAST) if self.turned == "each" else y
        self.weights[f"{name}.b"] = bias if self.turned == "each" else bias[:, None, None]
        return self.op("Add", y, f"{name}.b")

    def relu6(self, x: str) -> str:
        return self.op("Clip", x, "zero", "six")

    def model(self, output: str, rows: int, columns: int, batch: int = 1) -> onnx.ModelProto:
        shape = (batch, 3, rows, columns) if self.turned == "no" else (batch, rows, columns, 3)
        return make_model(self.nodes, {"x": shape}, [output], self.weights)


def _mobile(turned: str, rows: int, columns: int, batch: int = 1, blocks: int = 2) -> onnx.ModelProto:
    net = _Network(turned)
    x = net.relu6(net.conv("x" if turned != "once" else net.first("x"), 3, 16, 3, 2))
    for depth, channels, stride in BLOCKS[:blocks]:
        y = net.relu6(net.conv(x, depth, 4 * depth, 1))
        y = net.conv(net.relu6(net.conv(y, 1, 4 * depth, 3, stride, 4 * depth)), 4 * depth, channels, 1)
        x = net.op("Add", x, y) if (depth, stride) == (channels, 1) else y
    net.weights["pixels"] = np.int64([2, 3] if turned in ("no", "once") else [1, 2])
    net.weights["head"] = net.rng.standard_normal((channels, 10)).astype(np.float32)
    mean = net.op("ReduceMean", x, "pixels", keepdims=0)
    return net.model(net.op("MatMul", mean, "head"), rows, columns, batch)


def _several_readers(rows: int, columns: int) -> onnx.ModelProto:
    """A convolution, a pooling and arithmetic read the image, each with its own window and padding."""
    net = _Network("each")
    wide, tall = net.conv("x", 3, 8, 5), net.conv("x", 3, 8, 3)
    pooled = net.op("MaxPool", net.first("x"), kernel_shape=[3, 3], pads=[1] * 4)
    pooled = net.op("Transpose", pooled, perm=LAST)
    beside = net.op("Add", net.op("Sigmoid", "x"), pooled)
    return net.model(net.op("Concat", wide, tall, beside, axis=3), rows, columns)


def _image(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    return {"x": np.random.default_rng(7).standard_normal(shape).astype(np.float32)}


@pytest.mark.parametrize(("chip", "fp32_cast"), PRECISIONS)
@pytest.mark.parametrize("turned", ["once", "each"])
def test_a_network_as_onnxruntime(turned: str, chip: str, fp32_cast: str) -> None:
    model = _mobile(turned, 40, 24)
    check(model, _image(model), chip, fp32_cast, ROUNDINGS)


@pytest.mark.parametrize(("chip", "fp32_cast"), [("inf1", "all"), ("inf2", "none")])
@pytest.mark.parametrize(
    ("rows", "columns", "batch"),
    [(33, 47, 1), (7, 5, 3), (1, 64, 1), (64, 1, 2), (130, 18, 1)],
    ids=["odd", "few rows", "one row", "one column", "more rows than partitions"],
)
def test_shapes_as_onnxruntime(rows: int, columns: int, batch: int, chip: str, fp32_cast: str) -> None:
    model = _mobile("each", rows, columns, batch)
    check(model, _image(model), chip, fp32_cast, ROUNDINGS)


@pytest.mark.parametrize(("chip", "fp32_cast"), PRECISIONS)
def test_several_readers_as_onnxruntime(chip: str, fp32_cast: str) -> None:
    model = _several_readers(34, 50)
    check(model, _image(model), chip, fp32_cast, ROUNDINGS)


def _latency_us(model: onnx.ModelProto) -> float:
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron/inf2", params=params, options=BuildOptions())
    return tvm_neuron.report(library).latency_us


@pytest.mark.slow
@pytest.mark.parametrize("turned", ["once", "each"])
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (112, 112)])
def test_time_beside_the_twin(rows: int, columns: int, turned: str) -> None:
    found, twin = (_latency_us(_mobile(each, rows, columns, blocks=len(BLOCKS))) for each in (turned, "no"))
    assert found <= 1.05 * twin


def _kernels(model: onnx.ModelProto) -> list[Kernel]:
    return make_kernels(graph_of(model), load_rules(), load_device("inf2"))[0]


def test_the_array_transposes_no_image() -> None:
    kernels = _kernels(_mobile("each", 64, 64))
    assert not any(isinstance(kernel.root, Transposition) and len(kernel.out.shape) == 4 for kernel in kernels)


def test_each_image_has_its_channels_first() -> None:
    """In the order in which rows are folded and windows are packed: 3 channels of 5 rows, for a window and a step."""
    kernels, partition_of = make_kernels(graph_of(_mobile("each", 64, 64)), load_rules(), load_device("inf2"))
    assert {partition_of[kernel.out] for kernel in kernels if isinstance(kernel.root, Contraction)} == {1}
    first = next(kernel.root for kernel in kernels if isinstance(kernel.root, Contraction))
    assert first.weights.shape[0] == 15
