"""`tvm_neuron.compile` of ONNX models with example inputs: they give the sizes that the model leaves open."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvm_neuron
from tvm_neuron.errors import ModelError

X = np.random.default_rng(0).standard_normal((3, 5)).astype("float32")
Y = np.random.default_rng(1).standard_normal((3, 5)).astype("float32")


def model() -> onnx.ModelProto:
    sizes = ["rows", 5]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name in ("x", "y")]
    outputs = [helper.make_tensor_value_info("z", TensorProto.FLOAT, sizes)]
    graph = helper.make_graph([helper.make_node("Sub", ["x", "y"], ["z"])], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


@pytest.mark.parametrize("is_file", [True, False])
@pytest.mark.parametrize("examples", [(X, Y), [X, Y], {"y": Y, "x": X}])
def test_sizes_are_the_examples(examples: Any, is_file: bool, tmp_path: Path) -> None:
    onnx.save(model(), tmp_path / "m.onnx")
    library = tvm_neuron.compile(tmp_path / "m.onnx" if is_file else model(), examples)
    executor = library["default"](tvm_neuron.device())
    executor.run(x=X, y=Y)
    np.testing.assert_allclose(executor.get_output(0).numpy(), X - Y, rtol=2**-23)


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (X, "1 example inputs of a model with 2: x, y"),
        ({"x": X, "w": Y}, "'w'"),
        ({"x": X[0], "y": Y}, "'x'"),
    ],
)
def test_examples_of_another_model(examples: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        tvm_neuron.compile(model(), examples)
