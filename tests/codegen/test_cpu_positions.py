"""What addresses memory by values known at run time: CPU parts refuse those out of range, the others are right."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_neuron
from tvm_neuron.errors import ModelError


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
