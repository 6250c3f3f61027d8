"""What addresses memory by values known at run time: CPU parts refuse those out of range, the others are right."""

import os
import re
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import tvm
from onnx import helper
from tvm import relax

import tvm_neuron
from tests.frontend.test_standard_forms import made
from tvm_neuron import relay
from tvm_neuron.errors import ModelError, PositionError
from tvm_neuron.relay.graph_executor import GraphModule


@pytest.mark.slow
def test_every_operator_with_positions_in_and_out_of_range() -> None:
    junk = os.environ | {"MALLOC_PERTURB_": "165"}  # what is read beyond a tensor is not zero by chance
    made = subprocess.run([sys.executable, "-m", "tests.codegen.places"], capture_output=True, text=True, env=junk)
    assert made.returncode == 0, made.stderr[-2000:]
    *wrong, last = made.stdout.splitlines()
    assert not wrong
    found = re.fullmatch(r"(\d+) tried", last)
    assert found
    assert int(found[1]) > 200


@pytest.mark.parametrize("position", [9, -5])
def test_a_constant_position_outside_is_an_error_of_the_model(position: int) -> None:
    x = relax.Var("x", relax.TensorType((4, 5), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.take(x, relax.const(np.array([1, position])), 0)))
    with pytest.raises(ModelError, match=rf"take '.*': index {position} is outside of the .* \(4 elements\)"):
        tvm.compile(builder.get(), target="neuron")


def test_a_constant_position_counts_from_the_end() -> None:
    x = relax.Var("x", relax.TensorType((4, 5), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.take(x, relax.const(np.array([1, -1])), 0)))
    data = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    with tvm_neuron.build_options(tvm_neuron.BuildOptions(on_cpu=("*",))):
        machine = relax.VirtualMachine(tvm.compile(builder.get(), target="neuron"), tvm.cpu())
    np.testing.assert_array_equal(machine["main"](tvm.runtime.tensor(data)).numpy(), data[[1, -1]])


@pytest.mark.parametrize("op", ["Div", "Mod"])
def test_whole_numbers_are_not_divided_by_0(op: str) -> None:
    """The processor would end the process."""
    inputs = {"x": np.int32([7, -8, 9]), "d": np.int32([2, 3, 4])}
    model = made(helper.make_node(op, ["x", "d"], ["y"], name="share"), inputs, {}, opset=18)
    mod, params = relay.frontend.from_onnx(model)
    options = tvm_neuron.BuildOptions(on_cpu=("*",))
    executor = GraphModule(relay.build(mod, target="neuron", params=params, options=options)["default"]())
    executor.run(**inputs)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(executor.get_output(0).numpy(), session.run(None, inputs)[0])
    with pytest.raises(PositionError, match=f"{op} 'share': a divisor is 0"):
        executor.run(x=inputs["x"], d=np.int32([2, 0, 4]))
