"""States that a model goes through step by step, as scans, beside NumPy in float64."""

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import on_core
from tests.onnx_models import Arrays, make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.isa import TensorTensorScan
from tvm_neuron.program import Program
from tvm_neuron.sim import time_program

ROUNDING = 2.0**-20  # of the largest state: some tens of additions and products of float32 numbers


@dataclass(frozen=True)
class Chain:
    """h[t] = a[t] * h[t - 1] + b[t]; `decay` stands for all a, `order` are the places of the steps along `axis`."""

    state: tuple[int, ...]
    order: tuple[int, ...]
    axis: int
    decay: float = 0.0
    has_start: bool = False
    after: str = ""  # what is computed from each state
    reads_last: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.state[: self.axis], max(self.order) + 1, *self.state[self.axis :])

    def model(self) -> onnx.ModelProto:
        node, weights = helper.make_node, {"axis": np.array([self.axis]), "decay": np.array(self.decay, np.float32)}
        nodes, found, state = [], [], "start" if self.has_start else ""
        for t in self.order:
            weights[f"at{t}"] = np.array(t)
            nodes += [
                node("Gather", [x, f"at{t}"], [f"{x}{t}"], axis=self.axis) for x in ("a", "b")[bool(self.decay) :]
            ]
            if state:
                nodes.append(node("Mul", [state, "decay"] if self.decay else [f"a{t}", state], [f"m{t}"]))
                nodes.append(node("Add", [f"m{t}", f"b{t}"], [f"h{t}"]))
            state = f"h{t}" if state else f"b{t}"
            nodes += [node(self.after, [state], [f"{state}.after"])] if self.after else []
            shown = f"{state}.after" if self.after else state
            nodes.append(node("Unsqueeze", [shown, "axis"], [f"{shown}.row"]))
            found.append(f"{shown}.row")
        nodes.append(node("Concat", found, ["y"], axis=self.axis))
        nodes += [node("Relu", [state], ["last"])] if self.reads_last else []
        used = {name for each in nodes for name in each.input}
        inputs = {name: self.shape for name in ("a", "b") if name == "b" or not self.decay}
        inputs |= {"start": self.state} if self.has_start else {}
        weights = {name: value for name, value in weights.items() if name in used}
        return make_model(nodes, inputs, ["y", "last"] if self.reads_last else ["y"], weights)

    def wanted(self, inputs: Arrays) -> list[np.ndarray]:
        wide = {name: np.moveaxis(values, self.axis, 0) for name, values in inputs.items() if name != "start"}
        wide = {name: values.astype(np.float64) for name, values in wide.items()}
        state, found = inputs["start"].astype(np.float64) if self.has_start else None, []
        for t in self.order:
            factor = np.float32(self.decay) if self.decay else wide["a"][t]
            state = wide["b"][t] if state is None else factor * state + wide["b"][t]
            found.append(np.tanh(state) if self.after else state)
        return [np.stack(found, self.axis), *([np.maximum(state, 0)] if self.reads_last else [])]


def drawn(model: onnx.ModelProto) -> Arrays:
    rng = np.random.default_rng(7)
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in model.graph.input}
    return {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}


def scans(program: Program) -> int:
    return sum(isinstance(part, TensorTensorScan) for _, part in program.instructions())


STEADY = tuple(range(20))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chain", "chip", "is_scan"),
    [
        (Chain((2, 128), STEADY, 1), "inf1", True),
        (Chain((1, 300), STEADY, 2, has_start=True, reads_last=True), "inf2", True),
        (Chain((1, 160, 4), STEADY, 2, decay=0.75), "inf2", True),
        (Chain((4, 256), STEADY, 1, after="Tanh"), "inf2", True),
        (Chain((130, 4), tuple(range(0, 32, 2)), 0, reads_last=True), "inf2", True),
        (Chain((2, 128), STEADY[::-1], 1), "inf2", False),
        (Chain((2, 128), (0, 1, 2, 4, 5, 7), 1), "inf2", False),
        (Chain((64, 512), (0, 1, 2), 1), "inf2", False),
    ],
)
def test_beside_float64(chain: Chain, chip: str, is_scan: bool) -> None:
    """Steps forwards, whose operands lie evenly apart, are scans, unless their state is far longer."""
    model = chain.model()
    inputs, program = drawn(model), compile_model(model, f"neuron/{chip}").program
    assert bool(scans(program)) == is_scan
    for found, wanted in zip(on_core(model, inputs, chip), chain.wanted(inputs), strict=True):
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() < ROUNDING * np.abs(wanted).max()


def test_takes_less_time() -> None:
    model, device = Chain((1, 512), tuple(range(32)), 1, decay=0.9).model(), load_device("inf2")
    with without("recurrences", "list_schedules"):
        steps = compile_model(model, "neuron/inf2").program
    with without("list_schedules"):  # which steps, one after the other, gain more by
        scan = compile_model(model, "neuron/inf2").program
    assert not scans(steps)
    assert time_program(scan, device).total_ps < time_program(steps, device).total_ps / 2


@pytest.mark.slow
def test_a_way_without_scans_is_kept() -> None:
    """Where transfers of parts of rows, which no price has, take longer than all steps do, these stay."""
    model, device = Chain((1, 256, 16), tuple(range(40)), 2).model(), load_device("inf1")
    with without("recurrences"):
        steps = compile_model(model, "neuron/inf1").program
    program = compile_model(model, "neuron/inf1").program
    assert time_program(program, device).total_ps <= time_program(steps, device).total_ps
