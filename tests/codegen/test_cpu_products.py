"""Which products of CPU parts BLAS takes and which stay loops; all with onnxruntime's numbers."""

import numpy as np
import pytest
import tvm
from onnx import helper

from tests.onnx_models import Arrays, make_model, reference
from tvm_neuron import BuildOptions, relay
from tvm_neuron.build import lower
from tvm_neuron.frontend import from_onnx

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, dtype=np.float32)


CONVOLUTIONS = [
    ((1, 8, 12, 12), (16, 8, 3, 3), {"pads": [1, 1, 1, 1]}, True),
    ((2, 8, 12, 12), (16, 4, 3, 3), {"group": 2, "strides": [2, 2]}, True),
    ((1, 8, 12, 12), (8, 1, 3, 3), {"group": 8}, False),  # depthwise: nine products a sum
    ((1, 8, 12, 12), (4, 8, 3, 3), {}, False),  # four channels
    ((1, 4, 60), (16, 4, 5), {"dilations": [2]}, True),
    ((1, 4, 6, 6, 6), (8, 4, 3, 3, 3), {}, True),
]
PRODUCTS = [((40, 30), (30, 50), True), ((3, 40, 30), (3, 30, 20), True), ((4, 30), (30, 20), False)]


def check(model_inputs: Arrays, weights: Arrays, op: str, attributes: dict[str, object], function: str) -> bool:
    """Whether `function` is called; the numbers are compared."""
    node = helper.make_node(op, ["x", "w"], ["y"], name="node", **attributes)
    model = make_model([node], {name: array.shape for name, array in model_inputs.items()}, ["y"], weights)
    mod, params = from_onnx(model)
    options = BuildOptions(on_cpu=("node",))
    executor = relay.build(mod, params=params, options=options)["default"]()
    executor.run(**model_inputs)
    # a sum of up to 108 products of numbers of size 1, each step rounded to 2**-24 of it
    np.testing.assert_allclose(executor.get_output(0).numpy(), reference(model, model_inputs)[0], atol=1e-4)
    with tvm.target.Target("llvm"):
        return f"tvm_neuron.runtime.{function}" in lower(mod, params, options).script()


@pytest.mark.parametrize(("data", "weight", "attributes", "is_taken"), CONVOLUTIONS)
def test_convolutions(
    data: tuple[int, ...], weight: tuple[int, ...], attributes: dict[str, object], is_taken: bool
) -> None:
    assert check({"x": floats(*data)}, {"w": floats(*weight)}, "Conv", attributes, "convolve") == is_taken


@pytest.mark.parametrize(("left", "right", "is_taken"), PRODUCTS)
def test_products(left: tuple[int, ...], right: tuple[int, ...], is_taken: bool) -> None:
    assert check({"x": floats(*left), "w": floats(*right)}, {}, "MatMul", {}, "matmul") == is_taken
