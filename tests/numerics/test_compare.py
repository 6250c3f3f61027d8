"""compare: what roundings explain, and a deliberately wrong rewrite that they don't; NaN; wrong inputs."""

import json
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.numerics.models import convolved
from tests.onnx_models import make_model, mixed_model
from tvm_neuron import BuildOptions
from tvm_neuron.codegen.kernels import affine
from tvm_neuron.errors import InputError, ModelError, NeuronError, OptionError
from tvm_neuron.numerics import compare
from tvm_neuron.numerics.nonfinite import ALONE, IN_FLOAT32, ROUNDED

INF2 = BuildOptions(device="neuron/inf2")
NO_MORE: list[Any] = []


@pytest.mark.slow
def test_roundings_explain_a_right_compiler() -> None:
    model = convolved()
    x = np.random.default_rng(2).standard_normal((1, 8, 6, 6)).astype("float32")
    found = compare(model, {"x": x}, INF2, beginnings=3)
    assert found.is_explained
    assert found.inputs == "given"
    by_name = {row.name: row for row in found.operators}
    assert list(by_name) == [node.name for node in model.graph.node]
    assert {row.where for row in found.operators} == {"neuroncore"}
    for row in found.operators:
        assert row.alone is not None
        assert row.alone.error == pytest.approx(row.alone_explained.error, rel=0.02, abs=2e-5)
    # what one rounding of both operands to bfloat16 costs, by NumPy in float64
    scale, shift = _weight(model, "scale0"), _weight(model, "shift0")
    r0 = np.maximum(_convolved(x[0].astype("float64"), _weight(model, "w0")) * scale + shift, 0)
    narrow = [array.astype(ml_dtypes.bfloat16).astype("float64") for array in (r0, _weight(model, "w1"))]
    exact, rounded = _convolved(r0, _weight(model, "w1")), _convolved(*narrow)
    error = np.linalg.norm(rounded - exact) / np.linalg.norm(exact)
    assert by_name["conv1"].rounds == "multiplies bf16"
    assert by_name["conv1"].alone_explained.error == pytest.approx(error, rel=0.01)
    output = found.outputs[0]
    assert 0 < output.found.error < output.bound < 0.05
    best = min(found.what_if, key=lambda one: one.error)
    assert best.fp32_cast_of == {"conv0": "none", "conv1": "none"} or best.error < output.found.error / 20
    assert best.more_us > 0
    assert best.latency_us == pytest.approx(found.report.latency_us + best.more_us)


def _weight(model: onnx.ModelProto, name: str) -> np.ndarray:
    return next(onnx.numpy_helper.to_array(proto) for proto in model.graph.initializer if proto.name == name)


def _convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (1, 1), (1, 1)]), (3, 3), (1, 2))
    return np.einsum("chwij,ocij->ohw", windows, w)


def test_finds_an_operator_that_is_wrong_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(parts: affine.Scaled, channel: Any, right: Callable[..., Any] = affine.emit_scaled) -> Any:
        return right(affine.Scaled(parts.inner, parts.scale, parts.shift * 1.2), channel)

    monkeypatch.setattr(affine, "emit_scaled", wrong)
    found = compare(convolved(), options=INF2, beginnings=0, what_if=NO_MORE)
    assert not found.is_explained
    assert {row.name for row in found.operators if not row.is_explained} == {"add0", "add1"}
    assert any("Operator add0 (Add) is the first that is wrong by itself" in one.text for one in found.findings)


@pytest.mark.slow
@pytest.mark.parametrize("beginnings", [2, 16])
def test_finds_a_rewrite_that_is_wrong_only_for_operators_together(
    monkeypatch: pytest.MonkeyPatch, beginnings: int
) -> None:
    def wrong(expr: Any, channel: Any, scale: list[Any], right: Callable[..., Any] = affine._unscaled) -> Any:
        found = right(expr, channel, scale)
        scale[:] = [value * 1.05 if value.size > 1 else value for value in scale]
        return found

    monkeypatch.setattr(affine, "_unscaled", wrong)
    found = compare(convolved(), options=INF2, beginnings=beginnings, what_if=NO_MORE)
    assert not found.is_explained
    assert all(row.is_explained_alone for row in found.operators)
    told = [one.text for one in found.findings if one.is_defect]
    assert any("The program up to operator mul0 (Mul) is the first that departs" in text for text in told)


def test_nan_is_traced_to_the_operator_that_made_it() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("Sub", ["x", "r"], ["s"], name="negative"),
        helper.make_node("Sqrt", ["s"], ["q"], name="root"),
        helper.make_node("Exp", ["q"], ["y"], name="exp"),
    ]
    found = compare(make_model(nodes, {"x": [4, 8]}, ["y"]), options=INF2, what_if=NO_MORE)
    assert {(one.run, one.name) for one in found.nonfinite} == {(IN_FLOAT32, "root"), (ROUNDED, "root")}
    x = np.random.default_rng(0).standard_normal((4, 8)).astype("float32")
    assert found.nonfinite[0].nans == np.count_nonzero(x < 0)
    assert found.is_explained


def test_infinity_that_float16_makes_is_told_apart() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="product"),
        helper.make_node("MatMul", ["m", "v"], ["y"], name="again"),
    ]
    rng = np.random.default_rng(0)
    weights = {"w": rng.random((8, 8), np.float32) * 1e3, "v": rng.random((8, 4), np.float32)}
    options = BuildOptions(device="neuron/inf2", fp32_cast="all-fp16")
    x = rng.random((4, 8), np.float32) * 1e2
    found = compare(make_model(nodes, {"x": [4, 8]}, ["y"], weights), {"x": x}, options, what_if=NO_MORE)
    assert IN_FLOAT32 not in {one.run for one in found.nonfinite}
    made = {one.run: one.name for one in found.nonfinite}
    assert made[ROUNDED] == made.get(ALONE, "product") == "product"


@pytest.mark.slow
def test_operators_of_every_place_and_kind() -> None:
    """On the core, on the CPU, known at compile time; whole numbers; several outputs of which some are unread."""
    found = compare(mixed_model(), options=INF2, beginnings=2, what_if=NO_MORE)
    assert found.is_explained
    assert found.inputs == "random, seed 0"
    where = {row.name: row.where for row in found.operators}
    assert where["topk"] == "cpu"
    assert "transpose" not in where
    assert sum(row.grown is not None for row in found.operators) == 2
    assert json.loads(found.to_json())["outputs"][0]["name"] == "out"


def test_shapes_of_open_inputs_come_from_the_arrays() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], name="shape"),
        helper.make_node("Reshape", ["x", "s"], ["r"], name="reshape"),
        helper.make_node("Expand", ["r", "size"], ["e"], name="expand"),
        helper.make_node("Tanh", ["e"], ["y"], name="tanh"),
    ]
    model = make_model(nodes, {"x": ["n", 8], "size": [2]}, ["y"], dtypes={"size": TensorProto.INT64})
    x = np.random.default_rng(0).standard_normal((1, 8)).astype("float32")
    found = compare(model, {"x": x}, INF2, values={"size": [5, 8]}, what_if=NO_MORE)
    assert found.is_explained
    assert found.operators[-1].shape == (5, 8)
    drawn = compare(model, options=INF2, shapes={"x": (1, 8)}, values={"size": [5, 8]}, what_if=NO_MORE, beginnings=0)
    assert drawn.operators[-1].shape == (5, 8)
    with pytest.raises(ModelError, match=r"input 'x' has an open size at axis 0: give inputs, or its shape"):
        compare(model, options=INF2, values={"size": [5, 8]})
    with pytest.raises(ModelError, match="a value is given for 'sizes', but the model's inputs are: x, size"):
        compare(model, {"x": x}, INF2, values={"sizes": [5, 8]})
    with pytest.raises(ModelError, match="the value given for 'size' is no array of int64"):
        compare(model, {"x": x}, INF2, values={"size": "five"})


X = np.zeros((1, 8, 6, 6), np.float32)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"input 'x' is missing; the model takes 'x'"),
        ({"x": X, "y": X}, r"input 'y' is not one of the model's; it takes 'x'"),
        ({"x": X[0]}, r"input 'x' has shape \[8, 6, 6\]; the model takes \[1, 8, 6, 6\]"),
        ({"x": X.astype("float64")}, r"input 'x' is float64; the model takes float32: convert it"),
    ],
)
def test_inputs_that_do_not_fit(given: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}$"):
        compare(convolved(), given)


@pytest.mark.parametrize(
    ("options", "beginnings", "message"),
    [
        (BuildOptions(pipeline_cores=2), 1, "a comparison is of one core and one batch: leave pipeline_cores and"),
        (BuildOptions(), -1, "beginnings is -1: it is a number of operators, at least 0"),
    ],
)
def test_options_that_do_not_fit(options: BuildOptions, beginnings: int, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        compare(convolved(), options=options, beginnings=beginnings)


def test_what_the_reference_can_not_run_is_named() -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="relu")
    model = make_model([node], {"x": [4]}, ["y"], dtype=TensorProto.BFLOAT16)
    with pytest.raises(ModelError, match=r"onnxruntime, which is the reference, can't run operator 'relu' \(Relu\): "):
        compare(model, options=INF2)


def test_without_onnxruntime_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    wanted = r"a comparison with float32 needs the package onnxruntime: pip install 'tvm-neuron\[compare\]'"
    with pytest.raises(NeuronError, match=wanted):
        compare(convolved(), options=INF2)
