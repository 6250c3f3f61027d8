"""A model on the hardware model beside onnxruntime: the errors of its outputs, and what their precision explains."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper

import tvm_neuron
from tests.models.rounding import emulate_bfloat16
from tvm_neuron import relay

ROUNDS_ELSEWHERE = 2.0
EPSILON = 1e-3
Arrays = dict[str, NDArray]


@dataclass(frozen=True)
class Agreement:
    """One model on one chip. Times of the chip are the hardware model's; compiling counts in processor time."""

    network: str
    chip: str
    on_core: int
    on_cpu: tuple[str, ...]  # kinds of operators, one entry an operator
    errors: Mapping[str, float]  # relative L2, by float output
    bounds: Mapping[str, float]
    compile_seconds: float
    cycles: int
    latency_us: float
    pe_utilisation: float
    outputs: Mapping[str, NDArray]

    @property
    def worst(self) -> str:
        """The output nearest to its bound, or farthest past it."""
        return max(self.errors, key=lambda name: self.errors[name] / self.bounds[name])


class Case:
    """A model, inputs for it, and what onnxruntime makes of them in float32."""

    def __init__(self, model: onnx.ModelProto, inputs: Arrays) -> None:
        self.model = model
        self.inputs = inputs
        self.exact = run_exactly(model, inputs)
        rounded = run_exactly(emulate_bfloat16(model), inputs)
        floats = [name for name, array in self.exact.items() if array.dtype == np.float32]
        self.bounds = {n: ROUNDS_ELSEWHERE * relative_error(rounded[n], self.exact[n]) + EPSILON for n in floats}
        """As in `references`: bf16 costs us what it costs onnxruntime, but we round at other places."""

    def run(self, chip: str) -> Agreement:
        """Compiles it for `chip`, runs it on the hardware model, compares."""
        begin = time.process_time()
        mod, params = relay.frontend.from_onnx(self.model)
        library = relay.build(mod, target=f"neuron/{chip}", params=params)
        taken = time.process_time() - begin
        executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
        executor.run(**self.inputs)
        outputs = {name: executor.get_output(i).numpy() for i, name in enumerate(self.exact)}
        report = tvm_neuron.report(library)
        return Agreement(
            network=self.model.graph.name, chip=chip, on_core=len(report.placed("neuroncore")),
            on_cpu=tuple(row.op for row in report.placed("cpu")),
            errors={name: relative_error(outputs[name], self.exact[name]) for name in self.bounds},
            bounds=self.bounds, compile_seconds=taken, cycles=report.cycles, latency_us=report.latency_us,
            pe_utilisation=report.pe_utilisation, outputs=outputs,
        )  # fmt: skip


def relative_error(actual: NDArray, exact: NDArray) -> float:
    """L2, relative."""
    return float(np.linalg.norm((actual - exact).astype(np.float64)) / np.linalg.norm(exact.astype(np.float64)))


def run_exactly(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> Arrays:
    """What onnxruntime gives node by node, by output."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [value.name for value in model.graph.output]
    return dict(zip(names, session.run(names, inputs), strict=True))


def random_inputs(model: onnx.ModelProto, below: int = 60) -> Arrays:
    """Normal float32 inputs, integers in [0, below); seeded by the name of the graph."""
    rng = np.random.default_rng([1, *model.graph.name.encode()])
    return {value.name: _random(rng, value.type.tensor_type, below) for value in model.graph.input}


def _random(rng: np.random.Generator, kind: onnx.TypeProto.Tensor, below: int) -> NDArray:
    shape = [dim.dim_value for dim in kind.shape.dim]
    if kind.elem_type == TensorProto.FLOAT:
        return rng.standard_normal(shape).astype(np.float32)
    return rng.integers(0, below, shape).astype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
