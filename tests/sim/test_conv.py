"""Convolution nests against float64, on both chips, and the same bits however the loops are run."""

import numpy as np
import pytest

from tests.sim.convnet import Builder, Image
from tests.sim.resnet import random_arrays
from tests.sim.sync import serialise
from tvm_neuron.hw import load_device
from tvm_neuron.program import Program
from tvm_neuron.program.race import check_races
from tvm_neuron.program.verify import verify
from tvm_neuron.sim import Machine
from tvm_neuron.sim.action import Repeat

# channels in, channels out, size, kernel, stride, residual
CASES = [
    (16, 32, 8, 1, 1, False),
    (256, 128, 28, 1, 1, False),
    (128, 256, 14, 1, 1, True),
    (64, 64, 28, 3, 1, False),
    (256, 128, 14, 3, 2, False),
    (256, 256, 14, 3, 1, True),
    (64, 256, 14, 1, 2, False),
    (1, 1, 1, 1, 1, False),
]


def conv_program(columns: int, case: tuple) -> Program:
    channels, filters, size, kernel, stride, residual = case
    builder = Builder(columns)
    x = Image(channels, size, size, kernel // 2, 40000)
    y = Image(filters, size // stride, size // stride, 1, 55000)
    r = Image(filters, size // stride, size // stride, 0, 75000) if residual else None
    builder.load(x, "x")
    if r:
        builder.load(r, "r")
    builder.conv("conv", x, y, kernel, stride, 0, residual=r)
    builder.store(y, "y")
    return serialise(builder.program())


def reference(case: tuple, arrays: dict[str, np.ndarray]) -> np.ndarray:
    channels, filters, size, kernel, stride, residual = case
    wide = {name: value.astype(np.float64) for name, value in arrays.items()}
    weight = wide["conv.weight"].transpose(1, 0, 2, 3, 4).reshape(channels, kernel, kernel, filters)
    bias = wide["conv.bias"].T.reshape(-1)[:filters]
    padded = np.pad(wide["x"], ((0, 0), (kernel // 2,) * 2, (kernel // 2,) * 2))
    out = size // stride
    total = np.zeros((filters, out, out))
    for dy in range(kernel):
        for dx in range(kernel):
            window = padded[:, dy : dy + size : stride, dx : dx + size : stride]
            total += np.einsum("chw,cm->mhw", window, weight[:, dy, dx])
    total += bias[:, None, None] + (wide["r"] if residual else 0)
    return np.maximum(total, 0)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_conv(chip: str, case: tuple) -> None:
    device = load_device(chip)
    program = conv_program(device.pe_columns, case)
    verify(program, device)
    check_races(program, device)
    weights, inputs = random_arrays(program, "weight"), random_arrays(program, "input", 1)
    machine = Machine(program, device, weights)
    assert not any(isinstance(action, Repeat) for action in machine.plan()), "the nest should run at once"
    results = [machine.run(inputs, mode)["y"] for mode in ("nest", "step", "strict")]
    results.append(machine.run(inputs)["y"])
    assert all(result.tobytes() == results[0].tobytes() for result in results)
    wanted = reference(case, {**weights, **inputs})
    # One rounding to bfloat16 at the end: half a unit of 8 bits; sums in float32 add little to that.
    error = np.linalg.norm(results[0].astype(np.float64) - wanted)
    assert error <= 2**-8 * np.linalg.norm(wanted)


def test_without_the_library_numpy_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    program = conv_program(128, CASES[5])
    weights, inputs = random_arrays(program, "weight"), random_arrays(program, "input", 1)
    found = Machine(program, load_device("inf2"), weights).run(inputs)["y"]
    for user in ("isa.products", "isa.recorded", "native.assignment", "sim.execute"):
        monkeypatch.setattr(f"tvm_neuron.{user}.native", lambda: None)
    wanted = Machine(program, load_device("inf2"), weights).run(inputs)["y"]
    assert found.tobytes() == wanted.tobytes()
