"""Norms whose mean and variance come from one pass over their rows, beside NumPy in float64."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.on_core import ROUNDING, on_core
from tests.codegen.test_sums_on_the_way import Array, layer_norm, off
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Activation, BnAggr, BnStats, TensorScalar
from tvm_neuron.program import Program
from tvm_neuron.sim import time_program

STEP = "row_statistics"


def model_of(kind: str, shape: tuple[int, ...]) -> onnx.ModelProto:
    """Of norms over the last axis; `kept` ones divide what is left of the mean, as before opset 17."""
    node = helper.make_node
    weights: dict[str, Array] = {
        "gamma": np.ones(shape[-1:], np.float32), "last": np.array([-1]), "other": np.array([-2]),
        "two": np.array(2, np.float32), "eps": np.array(1e-5, np.float32), "scale": np.ones(shape[1:2], np.float32),
        "bias": np.zeros(shape[1:2], np.float32),
    }  # fmt: skip
    spread = [
        node("Sub", ["x", "m"], ["c"]), node("Pow", ["c", "two"], ["s"]), node("ReduceMean", ["s", "last"], ["v"]),
        node("Add", ["v", "eps"], ["e"]), node("Sqrt", ["e"], ["r"]), node("Div", ["c", "r"], ["y"]),
    ]  # fmt: skip
    nodes = {
        "operator": [node("LayerNormalization", ["x", "gamma"], ["y"])],
        "kept": [node("ReduceMean", ["x", "last"], ["m"]), *spread],
        "other mean": [node("ReduceMean", ["x", "other"], ["m"]), *spread],
        "images": [node("InstanceNormalization", ["x", "scale", "bias"], ["y"])],
    }[kind]  # fmt: skip
    used = {name for each in nodes for name in each.input}
    return make_model(nodes, {"x": shape}, ["y"], {k: v for k, v in weights.items() if k in used})


def other_mean(x: Array) -> Array:
    centred = x - x.mean(-2, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-5)


def images(x: Array) -> Array:
    return layer_norm(x.reshape(*x.shape[:2], -1)).reshape(x.shape)


REFERENCES = {"operator": layer_norm, "kept": layer_norm, "other mean": other_mean, "images": images}


def has_statistics(program: Program) -> bool:
    found = [part for _, part in program.instructions()]
    assert any(isinstance(part, BnStats) for part in found) == any(isinstance(part, BnAggr) for part in found)
    return any(isinstance(part, BnStats) for part in found)


@pytest.mark.parametrize(("chip", "precision"), [("inf1", "all"), ("inf2", "none")])
@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("operator", (3, 130, 768)),
        ("operator", (1, 5, 1537)),
        ("kept", (2, 40, 1024)),
        ("other mean", (2, 600, 600)),
        ("images", (2, 130, 31, 33)),
    ],
)
def test_beside_float64(kind: str, shape: tuple[int, ...], chip: str, precision: str) -> None:
    """Rows of one part and of several, even and not, in one and many chunks of partitions, of images too."""
    model, x = model_of(kind, shape), np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
    found = on_core(model, {"x": x}, chip, precision)[0]
    rounding, most = max(ROUNDING[precision], 2.0**-18), 6 if kind == "other mean" else 3  # which the array takes
    assert off(found, REFERENCES[kind](x.astype(np.float64)), rounding) < most
    program = compile_model(model, f"neuron/{chip}").program
    assert has_statistics(program) == (kind != "other mean")


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("mean", [30, 1000])
def test_no_worse_than_two_passes(chip: str, mean: float) -> None:
    """The variance is that around the mean of each part, so that a large mean costs no digits of it."""
    x = (mean + np.random.default_rng(3).standard_normal((130, 1200))).astype(np.float32)
    model = model_of("operator", x.shape)
    with without(STEP):
        twice = on_core(model, {"x": x}, chip)[0]
    once = on_core(model, {"x": x}, chip)[0]
    wanted = layer_norm(x.astype(np.float64))
    assert off(once, wanted, 2.0**-24) < 1.5 * off(twice, wanted, 2.0**-24)
    assert not np.array_equal(once, twice)


def test_infinities() -> None:
    """A row with one has no mean; others are as ever."""
    x = np.random.default_rng(4).standard_normal((40, 1024)).astype(np.float32)
    x[3, 7] = np.inf
    found = on_core(model_of("operator", x.shape), {"x": x}, "inf2")[0]
    assert np.isnan(found[3]).all()
    assert off(np.delete(found, 3, 0), layer_norm(np.delete(x, 3, 0).astype(np.float64)), 2.0**-18) < 3


@pytest.mark.parametrize(("columns", "is_taken"), [(1024, True), (512, True), (96, False)])
def test_where_it_takes_less_time(columns: int, is_taken: bool) -> None:
    """Short rows are summed many at once, but each asks for statistics of its own."""
    model, device = model_of("operator", (4, 128, columns)), load_device("inf2")
    with without(STEP):
        twice = compile_model(model, "neuron/inf2").program
    once = compile_model(model, "neuron/inf2").program
    assert has_statistics(once) == is_taken
    assert not has_statistics(twice)
    if is_taken:
        assert time_program(once, device).total_ps < time_program(twice, device).total_ps


def test_the_mean_is_subtracted_where_it_lies() -> None:
    """ACT has nothing to copy or negate: it takes the root, and POOL subtracts and multiplies at once."""
    program = compile_model(model_of("operator", (1, 64, 512)), "neuron/inf2").program
    found = [step for _, step in program.instructions()]
    assert [step.function for step in found if isinstance(step, Activation)] == ["rsqrt"]
    assert [(step.op0, step.op1) for step in found if isinstance(step, TensorScalar)] == [("subtract", "multiply")]
