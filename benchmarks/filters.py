"""Convolutions of few channels, drawn by seed: `python -m benchmarks.filters [--sample N] [--chip CHIP]`.

Blurs, edges, colours, features of signals: at most 16 channels in and out, on images of all sizes, behind another layer
or on what comes in. Printed is the modelled time beside that without bands (see `codegen/passes/bands.py`), and beside
`bound_us`, which no program beats.
"""

import random
import statistics
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tvm_neuron
from benchmarks.drawn import asked
from tvm_neuron.codegen.steps import without

WINDOWS = ((1, 1), (3, 3), (5, 5), (7, 7), (11, 11), (1, 9), (9, 1), (33, 1))


@dataclass(frozen=True)
class Case:
    """A convolution that keeps the size of an image but for its stride; `is_inside` another layer comes before it."""

    channels: int
    outputs: int
    groups: int
    rows: int
    columns: int
    window: tuple[int, int]
    stride: int
    is_inside: bool

    def model(self) -> onnx.ModelProto:
        """Opset 18."""
        shape = self.outputs, self.channels // self.groups, *self.window
        weights = np.random.default_rng(self.rows).standard_normal(shape).astype(np.float32)
        around = [extent // 2 for extent in self.window] * 2
        first = [helper.make_node("Relu", ["x"], ["r"])] if self.is_inside else []
        conv = helper.make_node(
            "Conv", ["r" if self.is_inside else "x", "w"], ["y"], pads=around, group=self.groups,
            strides=[self.stride] * 2,
        )  # fmt: skip
        image = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, self.channels, self.rows, self.columns))
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n", "c", "h", "w"))
        kept = [numpy_helper.from_array(weights, "w")]
        graph = helper.make_graph([*first, conv], "g", [image], [result], kept)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def draw(count: int, seed: int) -> list[Case]:
    """Half of them have a filter of its own for each channel."""
    rng = random.Random(seed)
    found = []
    while len(found) < count:
        channels, outputs = rng.choice((1, 2, 3, 4, 6, 8, 16)), rng.choice((1, 2, 3, 6, 8, 16))
        groups = channels if rng.random() < 0.5 else 1
        rows = rng.choice((14, 28, 56, 64, 100, 128, 200, 224, 256, 512))
        columns = rng.choice((rows, rows, 64, 100))
        window, stride = rng.choice(WINDOWS), rng.choice((1, 1, 1, 2))
        outputs = channels if groups > 1 else outputs
        found.append(Case(channels, outputs, groups, rows, columns, window, stride, rng.random() < 0.7))
    return found


def main() -> None:
    """A line each, then the means."""
    options = asked("filters", __doc__)
    shares, ratios = [], []
    for case in draw(options.sample, options.seed):
        target = f"neuron/{options.chip}"
        with without("bands"):
            windows = tvm_neuron.report(tvm_neuron.compile(case.model(), target=target))
        report = tvm_neuron.report(tvm_neuron.compile(case.model(), target=target))
        shares.append(report.latency_us / windows.latency_us)
        ratios.append(report.latency_us / report.bound_us)
        high, wide = case.window
        what = f"{high} x {wide}, {case.channels} to {case.outputs} in {case.groups}, {case.rows} x {case.columns}"
        what += f", stride {case.stride}" * (case.stride > 1) + " inside" * case.is_inside
        times = f"{windows.latency_us:8.1f} to {report.latency_us:8.1f} us, bound {report.bound_us:7.2f} us"
        print(f"{what:52} {times}, {ratios[-1]:5.1f}", flush=True)
    print(f"{statistics.geometric_mean(shares):.2f} of the time without bands, {max(shares):.2f} at most")
    print(f"over the bound: {statistics.geometric_mean(ratios):.1f} in the mean, {max(ratios):.1f} at worst")


if __name__ == "__main__":
    main()
