"""What nothing reads is not made."""

import numpy as np
import pytest
from onnx import helper

from tests.codegen.on_core import check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.isa import Activation


@pytest.mark.parametrize(("above", "activations"), [(2, 0), (0, 1)])
def test_above_the_only_column(above: int, activations: int) -> None:
    """Of a column nothing is left two places above the diagonal."""
    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Trilu", ["t", "k"], ["y"], upper=1)]
    model = make_model(nodes, {"x": (2, 1)}, ["y"], {"k": np.int64(above)})
    check(model, {"x": np.random.default_rng(1).standard_normal((2, 1)).astype(np.float32)}, "inf2", "none")
    program = compile_model(model, "neuron/inf2").program
    made = [each for _, each in program.instructions() if isinstance(each, Activation) and each.function == "tanh"]
    assert len(made) == activations
