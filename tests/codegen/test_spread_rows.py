"""Vectors and long rows with little beside them are spread over all partitions: the same results, in far less time."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import tvm_neuron
from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run

NODE = helper.make_node


def added(shape: tuple[int, ...]) -> onnx.ModelProto:
    nodes = [NODE("Add", ["x", "z"], ["s"]), NODE("Relu", ["s"], ["y"])]
    return make_model(nodes, {"x": shape, "z": shape}, ["y"], {})


def scaled(shape: tuple[int, ...], op: str) -> onnx.ModelProto:
    """Rows times a constant for each place, and a reduction of each, which is subtracted."""
    weights = {"w": np.random.default_rng(3).uniform(0.5, 2, shape[-1]).astype(np.float32), "last": np.array([-1])}
    nodes = [
        NODE("Mul", ["x", "w"], ["m"]), NODE(op, ["m", "last"], ["r"], keepdims=1),
        NODE("Sub", ["m", "r"], ["d"]), NODE("Softmax", ["d"], ["y"], axis=-1),
    ]  # fmt: skip
    return make_model(nodes, {"x": shape}, ["y"], weights)


@pytest.mark.parametrize(
    ("model", "chip"),
    [
        *((added(shape), "inf1") for shape in [(5000,), (2, 1000)]),
        *((added(shape), "inf2") for shape in [(1, 4096), (1, 3, 3000), (3, 1, 1021)]),
        *((scaled(shape, "ReduceMax"), "inf2") for shape in [(3000,), (2, 1, 1500)]),
        *((scaled(shape, "ReduceMean"), "inf2") for shape in [(1, 4096), (4, 5000)]),
        (scaled((1, 4096), "ReduceMax"), "inf1"),
    ],
)
def test_as_onnxruntime(model: onnx.ModelProto, chip: str) -> None:
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, f"neuron/{chip}"), case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


@settings(max_examples=10, deadline=None)
@given(rows=st.integers(1, 5), parts=st.sampled_from([60, 64, 125, 128]), inner=st.integers(4, 60), data=st.data())
def test_rows_of_any_length(rows: int, parts: int, inner: int, data: st.DataObject) -> None:
    shape = data.draw(st.permutations([rows, parts * inner]))
    op = data.draw(st.sampled_from(["ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceL2"]))
    axes = data.draw(st.sampled_from([[0], [1], [0, 1]]))
    nodes = [NODE("Neg", ["x"], ["n"]), NODE(op, ["n", "axes"], ["r"], keepdims=1), NODE("Mul", ["n", "r"], ["y"])]
    model = make_model(nodes, {"x": tuple(shape)}, ["y"], {"axes": np.array(axes)})
    case = Case(model, random_inputs(model))
    found = run(compile_model(model, "neuron/inf2"), case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


@pytest.mark.parametrize("shape", [(65536,), (1, 65536), (2, 40000), (1, 16, 65536)])
def test_partitions_are_busy(shape: tuple[int, ...]) -> None:
    """One partition alone, or elements that come one by one, took 10 to 400 times as long as DRAM needs."""
    report = tvm_neuron.report(tvm_neuron.compile(added(shape), target="neuron/inf2"))
    assert report.latency_us < 4 * report.roofline_us
