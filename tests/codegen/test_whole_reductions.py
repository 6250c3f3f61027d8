"""Reductions of a whole tensor to a single number, which lie across partitions, against NumPy."""

import numpy as np
import pytest
from onnx import helper

from tests.codegen.test_products import run_on_core
from tests.onnx_models import make_model
from tests.stages.networks import compile_model

_NUMPY = {"ReduceMax": np.max, "ReduceMin": np.min, "ReduceProd": np.prod}


@pytest.mark.parametrize("op", _NUMPY)
@pytest.mark.parametrize(
    "shape",
    [(7,), (128,), (1000,), (60000,), (1, 5, 1), (3, 1, 300), (240, 250), (2, 3, 4, 5), (2, 3, 4, 5, 6), (2,) * 8],
)
@pytest.mark.parametrize("target", ["neuron", "neuron/inf2"])
def test_one_number(op: str, shape: tuple[int, ...], target: str) -> None:
    """Tensors of up to 65536 elements stay float32; a product of n factors is off by n / 2 units at most."""
    x = np.random.default_rng(len(shape)).uniform(0.99, 1.01, shape).astype(np.float32)
    nodes = [
        helper.make_node("Neg", ["x"], ["n"], name="neg"),
        helper.make_node(op, ["n"], ["r"], name="reduce", keepdims=0),
        helper.make_node("Mul", ["r", "n"], ["y"], name="mul"),
    ]
    found = run_on_core(nodes, {"x": x}, {}, target)
    wanted = _NUMPY[op](-x.astype(np.float64)) * -x.astype(np.float64)
    units = x.size if op == "ReduceProd" else 1
    np.testing.assert_allclose(found, wanted, rtol=units * 2.0**-24)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceSumSquare"])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 4, 5, 6), (2,) * 8])
def test_sums_over_more_axes_than_an_access_pattern_has(op: str, shape: tuple[int, ...]) -> None:
    """In stages, in float32 throughout: n terms, all positive: n - 1 additions and a few roundings more."""
    x = np.random.default_rng(len(shape)).uniform(0.5, 1.5, shape).astype(np.float32)
    nodes = [
        helper.make_node("Abs", ["x"], ["a"], name="abs"),
        helper.make_node(op, ["a"], ["r"], name="reduce", keepdims=1),
        helper.make_node("Mul", ["r", "a"], ["y"], name="mul"),
    ]
    exact = x.astype(np.float64)
    wanted = (exact**2 if op == "ReduceSumSquare" else exact).sum() * exact
    np.testing.assert_allclose(run_on_core(nodes, {"x": x}, {}), wanted, rtol=x.size * 2.0**-24)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((3, 2, 3, 4, 5), (1, 2, 3, 4)), ((3, 4, 5, 2, 6), (0, 1, 2, 4)), ((2, 3, 2, 3, 2, 3, 2), (0, 1, 3, 5, 6))],
)
@pytest.mark.parametrize("target", ["neuron", "neuron/inf2"])
def test_more_axes_than_an_access_pattern_has_in_a_batch(
    op: str, shape: tuple[int, ...], axes: tuple[int, ...], target: str
) -> None:
    """In stages, on the core: n factors or terms around 1 are off by n units at most."""
    x = np.random.default_rng(len(axes)).uniform(0.99, 1.01, shape).astype(np.float32)
    nodes = [
        helper.make_node("Abs", ["x"], ["a"], name="abs"),
        helper.make_node(op, ["a", "axes"], ["r"], name="reduce", keepdims=1),
        helper.make_node("Mul", ["r", "a"], ["y"], name="mul"),
    ]
    found = run_on_core(nodes, {"x": x}, {"axes": np.array(axes, np.int64)}, target)
    reference = {**_NUMPY, "ReduceSum": np.sum}[op]
    exact = x.astype(np.float64)
    wanted = reference(exact, axis=axes, keepdims=True) * exact
    np.testing.assert_allclose(found, wanted, rtol=x.size * 2.0**-24)


def test_integers() -> None:
    """The same of a dtype that is exact in float32; the number is compared with every element."""
    x = np.random.default_rng(0).integers(-100, 100, (30, 40)).astype(np.float32)
    nodes = [
        helper.make_node("Cast", ["x"], ["i"], name="cast", to=3),
        helper.make_node("ReduceMax", ["i"], ["m"], name="reduce", keepdims=0),
        helper.make_node("Equal", ["i", "m"], ["e"], name="equal"),
        helper.make_node("Cast", ["e"], ["y"], name="back", to=1),
    ]
    np.testing.assert_array_equal(run_on_core(nodes, {"x": x}, {}), x == x.max())


@pytest.mark.parametrize(("elems", "through_dram"), [(500, False), (1000, False), (8192, True)])
def test_few_elements_stay_on_one_partition(elems: int, through_dram: bool) -> None:
    """To bring them to others through DRAM takes two transfers, 2.6 us to start these alone."""
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("ReduceMax", ["a"], ["r"], keepdims=1),
        helper.make_node("Mul", ["r", "a"], ["y"]),
    ]
    compiled = compile_model(make_model(nodes, {"x": (1, elems)}, ["y"], {}), "neuron/inf2")
    assert any(tensor.kind == "scratch" for tensor in compiled.program.tensors) == through_dram
