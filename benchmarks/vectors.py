"""Vectors and rows of all lengths, drawn by seed: `python -m benchmarks.vectors [--sample N] [--chip CHIP]`.

An operator or two on a tensor of one to three dimensions, some of them a single element: what users try first. Printed
is the modelled time over the time that DRAM needs, beside `bound_us`, which no program beats.
"""

import math
import random
import statistics
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tvm_neuron
from benchmarks.drawn import asked

MOST_ELEMS = 2**20
OPERATORS = ("Add", "Relu", "Softmax", "ReduceSum", "ReduceMax", "ReduceMean", "LayerNormalization")


@dataclass(frozen=True)
class Case:
    """An operator on a tensor; what is reduced is subtracted again."""

    operator: str
    shape: tuple[int, ...]

    def model(self) -> onnx.ModelProto:
        """Opset 18."""
        node, last = helper.make_node, self.shape[-1]
        weights = {"axis": np.array([-1]), "scale": np.ones(last, np.float32)}
        nodes = {
            "Add": [node("Add", ["x", "z"], ["y"])],
            "Relu": [node("Relu", ["x"], ["y"])],
            "Softmax": [node("Softmax", ["x"], ["y"], axis=-1)],
            "LayerNormalization": [node("LayerNormalization", ["x", "scale"], ["y"])],
        }.get(self.operator, [node(self.operator, ["x", "axis"], ["r"]), node("Sub", ["x", "r"], ["y"])])
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shape) for name in "xz"]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, self.shape)]
        read = {name for each in nodes for name in each.input}
        kept = [numpy_helper.from_array(array, name) for name, array in weights.items() if name in read]
        graph = helper.make_graph(nodes, "g", [i for i in inputs if i.name in read], outputs, kept)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def draw(count: int, seed: int) -> list[Case]:
    """Lengths are spread evenly over orders of magnitude, and half of them are multiples of 64."""
    rng = random.Random(seed)
    found = []
    while len(found) < count:
        extents = [1 if rng.random() < 0.5 else round(math.exp(rng.uniform(0, 6))) for _ in range(rng.randint(0, 2))]
        length = round(math.exp(rng.uniform(math.log(64), math.log(MOST_ELEMS))))
        shape = (*extents, length // 64 * 64 if rng.random() < 0.5 else length)
        if math.prod(shape) <= MOST_ELEMS:
            found.append(Case(rng.choice(OPERATORS), shape))
    return found


def main() -> None:
    """A line each, then the mean and the worst."""
    options = asked("vectors", __doc__)
    ratios: dict[Case, float] = {}
    for case in draw(options.sample, options.seed):
        report = tvm_neuron.report(tvm_neuron.compile(case.model(), target=f"neuron/{options.chip}"))
        ratios[case] = report.latency_us / report.bound_us
        what = f"{case.operator} of {list(case.shape)}:"
        times = f"{report.latency_us:10.1f} us, bound {report.bound_us:7.2f} us, {ratios[case]:5.1f}"
        print(f"{what:44} {times}", flush=True)
    large = [ratio for case, ratio in ratios.items() if math.prod(case.shape) >= 2**16]
    for what, found in (("all", list(ratios.values())), ("of 65,536 and more", large)):
        if found:
            print(f"{what}: {statistics.geometric_mean(found):.1f} in the mean, {max(found):.1f} at worst")


if __name__ == "__main__":
    main()
