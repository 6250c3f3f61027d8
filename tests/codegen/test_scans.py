"""Cumulative sums by scans, beside NumPy in float64."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import on_core
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.isa import TensorTensorScan
from tvm_neuron.program import Program
from tvm_neuron.sim import time_program

EXACT = 2.0**-19  # of the largest sum: what additions of some hundred float32 numbers of either sign round off
STEP = "scan"


def cumulative(shape: tuple[int, ...], axis: int, **flags: int) -> onnx.ModelProto:
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], **flags)
    return make_model([node], {"x": shape}, ["y"], {"axis": np.array(axis)})


def wanted(x: np.ndarray, axis: int, exclusive: int = 0, reverse: int = 0) -> np.ndarray:
    x = np.flip(x, axis) if reverse else x
    sums = np.cumsum(x.astype(np.float64), axis)
    sums = sums - x if exclusive else sums
    return np.flip(sums, axis) if reverse else sums


def scans(program: Program) -> int:
    return sum(isinstance(part, TensorTensorScan) for _, part in program.instructions())


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    ("shape", "axis", "flags", "is_scanned"),
    [
        ((128, 512), 1, {}, True),
        ((3, 300, 200), -1, {}, True),
        ((2, 128, 600), 2, {"exclusive": 1}, True),
        ((2000, 4), 0, {}, True),
        ((96, 96), 0, {"exclusive": 1}, False),
        ((64, 128), 0, {}, False),
        ((40, 300), 1, {"reverse": 1, "exclusive": 1}, False),
    ],
)  # fmt: skip
def test_beside_float64(chip: str, shape: tuple[int, ...], axis: int, flags: dict[str, int], is_scanned: bool) -> None:
    """Rows in one and many chunks of partitions, moved ones, and those for which a product takes less time."""
    model, x = cumulative(shape, axis, **flags), np.random.default_rng(sum(shape)).standard_normal(shape)
    x = x.astype(np.float32)
    found, exact = on_core(model, {"x": x}, chip)[0], wanted(x, axis, **flags)
    program = compile_model(model, f"neuron/{chip}").program
    assert bool(scans(program)) == is_scanned
    rounding = EXACT if is_scanned else 2.0**-7  # the PE array reads bfloat16
    assert np.abs(found - exact).max() < rounding * np.abs(exact).max()


@pytest.mark.parametrize(
    ("shape", "axis", "is_taken"),
    [((128, 2048), 1, True), ((128, 512), 1, True), ((64, 16, 8), 1, True), ((64, 128), 0, False)],
)
def test_where_it_takes_less_time(shape: tuple[int, ...], axis: int, is_taken: bool) -> None:
    """The matrix of a product grows with the square of the axis; what lies along the partitions has to be turned."""
    model, device = cumulative(shape, axis), load_device("inf2")
    with without(STEP):
        product = compile_model(model, "neuron/inf2").program
    scan = compile_model(model, "neuron/inf2").program
    assert scans(scan) == is_taken
    assert not scans(product)
    if is_taken:
        assert time_program(scan, device).total_ps < time_program(product, device).total_ps


def test_of_what_lies_before_an_infinity() -> None:
    """A scan adds up what is there; in a product every sum of the row would be NaN."""
    x = np.random.default_rng(1).standard_normal((130, 512)).astype(np.float32)
    x[3, 100] = np.inf
    found = on_core(cumulative(x.shape, 1), {"x": x}, "inf2")[0]
    exact = wanted(x, 1)
    finite = np.isfinite(exact)
    assert np.array_equal(found[~finite], exact[~finite])
    assert np.abs(found[finite] - exact[finite]).max() < EXACT * np.abs(exact[finite]).max()
