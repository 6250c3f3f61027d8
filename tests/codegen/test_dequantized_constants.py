"""Operators on weights that the model holds quantised keep the precision asked for."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.models.agreement import relative_error, run_exactly
from tests.onnx_models import make_model
from tvm_neuron import BuildOptions, device, relay, report

BOUND = 2.0**-19  # sums of some hundred products in float32


@dataclass(frozen=True)
class Case:
    """`op` of x and of weights that are dequantised along `axis`, or all by one scale."""

    op: str
    x: tuple[int, ...]
    weights: tuple[int, ...]
    axis: int | None = None
    dtype: str = "int8"
    is_first: bool = False
    block: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)

    def model(self) -> onnx.ModelProto:
        rng = np.random.default_rng(len(self.op))
        limits = np.iinfo(self.dtype)
        shape: tuple[int, ...] = () if self.axis is None else (self.weights[self.axis],)
        attributes = {} if self.axis is None else {"axis": self.axis}
        if self.block:
            shape = tuple(n // self.block if d == self.axis else n for d, n in enumerate(self.weights))
            attributes["block_size"] = self.block
        weights = {
            "w": rng.integers(limits.min, limits.max, self.weights).astype(self.dtype),
            "scale": rng.uniform(0.001, 0.02, shape).astype(np.float32),
        }
        if self.dtype != "int32":  # whose zero is 0
            weights["zero"] = rng.integers(limits.min, limits.max, shape).astype(self.dtype)
        operands = ["d", "x"] if self.is_first else ["x", "d"]
        nodes = [
            helper.make_node("DequantizeLinear", list(weights), ["d"], "dequantize", **attributes),
            helper.make_node(self.op, operands, ["y"], "op", **self.attributes),
        ]
        return make_model(nodes, {"x": self.x}, ["y"], weights, opset=21)


CASES = [
    Case("MatMul", (8, 64), (64, 48)),
    Case("MatMul", (2, 8, 64), (64, 48), axis=1, dtype="uint8"),
    Case("MatMul", (64, 8), (48, 64), axis=0, is_first=True),
    Case("MatMul", (8, 64), (64, 48), axis=0, block=16),
    Case("Gemm", (8, 64), (48, 64), axis=0, attributes={"transB": 1, "alpha": 0.5}),
    Case("Conv", (1, 16, 9, 9), (24, 16, 3, 3), axis=0),
    Case("Conv", (1, 16, 9, 9), (16, 1, 3, 3), axis=0, attributes={"group": 16}),
    Case("ConvTranspose", (1, 16, 5, 5), (16, 24, 3, 3), axis=1, dtype="uint8"),
    Case("Mul", (8, 64), (64,)),
    Case("Add", (8, 64), (8, 64), axis=1, dtype="int32"),
    Case("Concat", (8, 64), (3, 64), axis=1, attributes={"axis": 0}),
    Case("Max", (8, 64), (8, 1), dtype="uint8"),
]


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.filterwarnings("ignore:nothing of the model runs")  # inf1 multiplies no float32
def test_in_float32(case: Case, chip: str) -> None:
    """Held to onnxruntime without its optimisations: those multiply by quantised weights in 8 bits, 5e-3 off."""
    model = case.model()
    mod, params = relay.frontend.from_onnx(model)
    options = BuildOptions(fp32_cast="none")
    library = relay.build(mod, target=f"neuron/{chip}", params=params, options=options)
    assert chip == "inf1" or not report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](device()))
    inputs = {"x": np.random.default_rng(1).standard_normal(case.x).astype(np.float32)}
    executor.run(**inputs)
    assert relative_error(executor.get_output(0).numpy(), run_exactly(model, inputs)["y"]) < BOUND
