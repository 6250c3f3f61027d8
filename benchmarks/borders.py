"""Operators on what comes in, drawn by seed: `python -m benchmarks.borders [--sample N] [--chip CHIP]`.

A part behind an operator for the CPU begins with any operator, not with an image of three channels. Printed is the
modelled time of one that reads an input, of the same behind a Relu, and `bound_us`, which no program beats: at the
border it should take no longer.
"""

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

import tvm_neuron
from benchmarks.drawn import asked

NODE = helper.make_node
Weights = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """An operator of that name on [1, channels, size, size] with so many outputs, and a window of `kernel`."""

    name: str
    channels: int
    size: int
    outputs: int
    kernel: int

    def model(self, is_inside: bool) -> onnx.ModelProto:
        """Opset 18; with `is_inside` a Relu comes before it."""
        weights: Weights = {}
        nodes = [NODE("Relu", ["x"], ["r"])] if is_inside else []
        nodes += OPERATORS[self.name](self, "r" if is_inside else "x", weights)
        shape = (1, self.channels, self.size, self.size)
        image = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        kept = [numpy_helper.from_array(array, name) for name, array in weights.items()]
        graph = helper.make_graph(nodes, "g", [image], [result], kept)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)

    def drawn(self, *shape: int) -> np.ndarray:
        """Weights."""
        return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def _convolution(case: Case, x: str, weights: Weights) -> list[NodeProto]:
    weights["w"] = case.drawn(case.outputs, case.channels, case.kernel, case.kernel)
    return [NODE("Conv", [x, "w"], ["y"], pads=[case.kernel // 2] * 4)]


def _depthwise(case: Case, x: str, weights: Weights) -> list[NodeProto]:
    weights["w"] = case.drawn(case.channels, 1, case.kernel, case.kernel)
    return [NODE("Conv", [x, "w"], ["y"], pads=[case.kernel // 2] * 4, group=case.channels)]


def _pooled(case: Case, x: str, weights: Weights) -> list[NodeProto]:
    return [NODE("MaxPool", [x], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)]


def _classes(case: Case, x: str, weights: Weights) -> list[NodeProto]:
    weights["w"] = case.drawn(case.outputs, case.channels, 1, 1)
    return [NODE("Conv", [x, "w"], ["c"]), NODE("Softmax", ["c"], ["y"], axis=1)]


def _channels_last(case: Case, x: str, weights: Weights) -> list[NodeProto]:
    weights["w"] = case.drawn(case.outputs, case.channels, 1, 1)
    return [NODE("Conv", [x, "w"], ["c"]), NODE("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1])]


def _tokens(case: Case, x: str, weights: Weights) -> list[NodeProto]:
    weights |= {
        "shape": np.array([1, case.channels, -1]),
        "g": case.drawn(case.channels),
        "b": case.drawn(case.channels),
    }
    weights["w"] = case.drawn(case.channels, case.outputs)
    return [
        NODE("Reshape", [x, "shape"], ["s"]), NODE("Transpose", ["s"], ["t"], perm=[0, 2, 1]),
        NODE("LayerNormalization", ["t", "g", "b"], ["n"]), NODE("MatMul", ["n", "w"], ["y"]),
    ]  # fmt: skip


def _upsampled(case: Case, x: str, weights: Weights) -> list[NodeProto]:
    weights["twice"] = np.float32([1, 1, 2, 2])
    return [NODE("Resize", [x, "", "twice"], ["y"], mode="linear")]


def _transposed(case: Case, x: str, weights: Weights) -> list[NodeProto]:
    weights["w"] = case.drawn(case.channels, case.outputs, 2, 2)
    return [NODE("ConvTranspose", [x, "w"], ["y"], strides=[2, 2])]


def _blocks(case: Case, x: str, weights: Weights) -> list[NodeProto]:
    weights["w"] = case.drawn(case.outputs, 4 * case.channels, 3, 3)
    return [NODE("SpaceToDepth", [x], ["b"], blocksize=2), NODE("Conv", ["b", "w"], ["y"], pads=[1] * 4)]


def _chain(case: Case, x: str, weights: Weights) -> list[NodeProto]:
    weights |= {"w": case.drawn(case.channels, case.channels, 7), "flat": np.array([1, case.channels, -1])}
    return [
        NODE("Reshape", [x, "flat"], ["s"]), NODE("Conv", ["s", "w"], ["c"], pads=[3, 3]), NODE("Relu", ["c"], ["a"]),
        NODE("Conv", ["a", "w"], ["y"], pads=[3, 3]),
    ]  # fmt: skip


OPERATORS: dict[str, Callable[[Case, str, Weights], list[NodeProto]]] = {
    "convolution": _convolution, "depthwise": _depthwise, "pool": _pooled, "classes": _classes,
    "channels last": _channels_last, "tokens": _tokens, "upsampling": _upsampled, "transposed": _transposed,
    "blocks": _blocks, "along time": _chain,
}  # fmt: skip


def draw(count: int, seed: int) -> list[Case]:
    """Feature maps of all depths: many channels of few pixels, and few of many."""
    rng = random.Random(seed)
    found = []
    while len(found) < count:
        size = rng.choice((14, 28, 32, 56, 64, 128))
        channels = rng.choice([n for n in (8, 16, 24, 32, 64, 96, 128, 256) if n * size * size <= 2**20])
        found.append(
            Case(rng.choice(list(OPERATORS)), channels, size, rng.choice((4, 21, 32, 64, 150)), rng.choice((1, 3, 5)))
        )
    return found


def main() -> None:
    """A line each, then the means."""
    options = asked("borders", __doc__)
    shares, ratios = [], []
    for case in draw(options.sample, options.seed):
        target = f"neuron/{options.chip}"
        inside, border = (
            tvm_neuron.report(tvm_neuron.compile(case.model(is_inside), target=target)) for is_inside in (True, False)
        )
        shares.append(border.latency_us / inside.latency_us)
        ratios.append(border.latency_us / border.bound_us)
        what = f"{case.name}, {case.channels} to {case.outputs}, {case.size} x {case.size}, window {case.kernel}"
        times = (
            f"inside {inside.latency_us:8.1f} us, border {border.latency_us:8.1f} us, bound {border.bound_us:7.2f} us"
        )
        print(f"{what:52} {times}, {ratios[-1]:5.1f}", flush=True)
    print(f"at the border {statistics.geometric_mean(shares):.2f} of the time inside, {max(shares):.2f} at most")
    print(f"over the bound: {statistics.geometric_mean(ratios):.1f} in the mean, {max(ratios):.1f} at worst")


if __name__ == "__main__":
    main()
