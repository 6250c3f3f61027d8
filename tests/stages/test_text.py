"""The program is all that the hardware model runs: change an operand in its text and the output changes with it."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from tests.onnx_models import reference
from tests.stages.networks import compile_model, conv_relu_conv, run
from tvm_neuron.neff import Neff
from tvm_neuron.program import parse_program, print_program

X = {"x": np.random.default_rng(0).standard_normal((1, 8, 10, 10)).astype(np.float32)}
# The operands of both convolutions and the value between them are rounded to bfloat16, half a unit of 2**-8 each; the
# errors of sums of products average out, so that a relative L2 error of two units is far from both sides.
TOLERANCE = 2 * 2.0**-8


@pytest.fixture(scope="module")
def compiled() -> Neff:
    return compile_model(conv_relu_conv())


def rewritten(compiled: Neff, old: str, new: str, operator: str) -> Neff:
    """The NEFF after `old` became `new` in the text of the one instruction of `operator` that holds it."""
    origin = next(n for n, o in enumerate(compiled.program.origins) if o.name == operator)
    lines = print_program(compiled.program).split("\n")
    (at,) = [i for i, line in enumerate(lines) if old in line and line.endswith(f" origin={origin}")]
    lines[at] = lines[at].replace(old, new)
    return replace(compiled, program=parse_program("\n".join(lines)))


def output(compiled: Neff) -> np.ndarray:
    return run(compiled, X)["y"]


def error(actual: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(actual - wanted) / np.linalg.norm(wanted))


def with_operator(name: str, op_type: str) -> onnx.ModelProto:
    model = conv_relu_conv()
    next(node for node in model.graph.node if node.name == name).op_type = op_type
    return model


def test_as_printed_it_gives_the_same_bits(compiled: Neff) -> None:
    read = replace(compiled, program=parse_program(print_program(compiled.program)))
    assert output(read).tobytes() == output(compiled).tobytes()
    assert error(output(compiled), reference(conv_relu_conv(), X)[0]) < TOLERANCE


@pytest.mark.parametrize(("function", "op_type"), [("tanh", "Tanh"), ("sigmoid", "Sigmoid"), ("abs", "Abs")])
def test_another_activation_function(compiled: Neff, function: str, op_type: str) -> None:
    changed = output(rewritten(compiled, "function=relu", f"function={function}", "conv1"))
    wanted = reference(with_operator("relu", op_type), X)[0]
    assert error(changed, wanted) < TOLERANCE
    assert error(output(compiled), wanted) > 10 * TOLERANCE


def test_another_scale(compiled: Neff) -> None:
    changed = output(rewritten(compiled, "scale=1.0", "scale=-2.0", "conv2"))
    np.testing.assert_array_equal(changed, -2 * output(compiled))  # powers of two are exact


def test_another_address(compiled: Neff) -> None:
    """The second convolution reads one pixel further: its output moves by one."""
    matmuls = [i for _, i in compiled.program.instructions() if i.mnemonic == "nc_matmul"]
    before = next(i for i in matmuls if i.psum.partitions == 16)
    at = f"at={before.moving.offset}"
    moved = f"at={before.moving.offset.plus(2)}"
    changed = output(rewritten(compiled, at, moved, "conv2"))
    np.testing.assert_array_equal(changed.reshape(16, 100)[:, :99], output(compiled).reshape(16, 100)[:, 1:])
