"""Layers that need whole images, of more images than SBUF holds at once: one image after the other, results in DRAM."""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tests.stages.test_small_memory import shrunk

NODE = helper.make_node
BATCH, CHANNELS, SIZE, BLOCKS = 8, 128, 24, 2


def excited() -> onnx.ModelProto:
    """Blocks that scale channels by what the mean of an image says, at two sizes, and wide layers behind them."""
    rng = np.random.default_rng(0)
    weights: dict[str, np.ndarray] = {"rows": np.array([2, 3])}
    nodes: list[onnx.NodeProto] = []

    def conv(x: str, channels: int, outputs: int, side: int = 1, stride: int = 1) -> str:
        y = f"c{len(nodes)}"
        weights[f"w{y}"] = rng.standard_normal((outputs, channels, side, side)).astype(np.float32)
        weights[f"w{y}"] /= np.sqrt(channels * side * side)
        nodes.append(NODE("Conv", [x, f"w{y}"], [y], strides=[stride] * 2, pads=[side // 2] * 4))
        return y

    def op(kind: str, *inputs: str) -> str:
        nodes.append(NODE(kind, inputs, [f"o{len(nodes)}"]))
        return f"o{len(nodes) - 1}"

    x, channels = conv("x", 3, CHANNELS, 3), CHANNELS
    for _ in range(2):
        for _ in range(BLOCKS):
            inner = op("Relu", conv(x, channels, channels, 3))
            factors = op("Sigmoid", conv(op("Relu", conv(op("ReduceMean", inner, "rows"), channels, 16)), 16, channels))
            x = op("Relu", op("Add", op("Mul", inner, factors), x))
        x, channels = conv(x, channels, 2 * channels, 3, 2), 2 * channels
    nodes.append(NODE("ReduceMean", [x, "rows"], ["y"]))
    return make_model(nodes, {"x": (BATCH, 3, SIZE, SIZE)}, ["y"], weights)


def test_of_layers_that_need_whole_images_only_the_last_goes_to_dram(tmp_path: Path) -> None:
    """Of 24 KiB an image of the first size takes 1.2; those of several layers of eight images find no room."""
    model = excited()
    case = Case(model, random_inputs(model))
    compiled = compile_model(model, shrunk(tmp_path, "inf2", 24))
    assert relative_error(run(compiled, case.inputs, "strict")["y"], case.exact["y"]) < case.bounds["y"]
    tensors = [tensor.shape for tensor in compiled.program.tensors if tensor.kind == "scratch"]
    assert len([shape for shape in tensors if shape[:2] == (CHANNELS, BATCH) and shape[2] >= SIZE]) == 1
