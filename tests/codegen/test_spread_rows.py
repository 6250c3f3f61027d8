"""Vectors and long rows with little beside them are spread over all partitions: the same results, in far less time."""

import numpy as np
import onnx
import onnxruntime
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


def columns_of(boxes: int, classes: int, is_kept: bool) -> onnx.ModelProto:
    """Scores of boxes by class, of which those of two classes are compared with a limit, and kept, too."""
    weights = {"limit": np.float32(1 / classes), "flat": np.array([-1, classes]), "c0": np.array(1), "c1": np.array(0)}
    nodes = [NODE("Softmax", ["x"], ["p"], axis=-1), NODE("Reshape", ["p", "flat"], ["s"])]
    for n in range(2):
        nodes += [NODE("Gather", ["s", f"c{n}"], [f"y{n}"], axis=1), NODE("Greater", [f"y{n}", "limit"], [f"g{n}"])]
    model = make_model(nodes, {"x": (1, boxes, classes)}, [*(["y0", "y1"] if is_kept else []), "g0", "g1"], weights)
    for output in model.graph.output:
        if output.name.startswith("g"):
            output.type.tensor_type.elem_type = onnx.TensorProto.BOOL
    return model


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("shape", [(2000, 21), (1024, 3), (700, 2)])
def test_columns(shape: tuple[int, int], is_kept: bool) -> None:
    """Of scores that are rounded to bfloat16, 1 in 20 may come to lie on the other side of a limit amid them."""
    model = columns_of(*shape, is_kept)
    inputs = random_inputs(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [output.name for output in model.graph.output]
    wanted = dict(zip(names, session.run(None, inputs), strict=True))
    found = run(compile_model(model, "neuron/inf2"), inputs, "strict")
    for name, exact in wanted.items():
        if exact.dtype == bool:
            assert np.mean(found[name] != exact) < 0.05
        else:
            assert relative_error(found[name], exact) < 2.0**-6  # operands and results are rounded to 8 digits


@pytest.mark.parametrize("is_kept", [True, False])
def test_columns_go_to_dram_in_rows(is_kept: bool) -> None:
    """Element by element they took 36 to 400 times as long as DRAM needs."""
    report = tvm_neuron.report(tvm_neuron.compile(columns_of(8732, 91, is_kept), target="neuron/inf2"))
    assert report.latency_us < 6 * report.roofline_us


@pytest.mark.parametrize("shape", [(65536,), (1, 65536), (2, 40000), (1, 16, 65536)])
def test_partitions_are_busy(shape: tuple[int, ...]) -> None:
    """One partition alone, or elements that come one by one, took 10 to 400 times as long as DRAM needs."""
    report = tvm_neuron.report(tvm_neuron.compile(added(shape), target="neuron/inf2"))
    assert report.latency_us < 4 * report.roofline_us
