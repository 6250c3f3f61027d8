"""Inputs of which kernels would read rows of padded maps, or strips of columns, come in long rows, and results hold."""

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

import tvm_neuron
from tests.codegen.on_core import PRECISIONS, check
from tests.models.agreement import random_inputs
from tests.onnx_models import make_model
from tvm_neuron.allocation.memory_plan import strip_bytes, strip_loads
from tvm_neuron.codegen.kernels.bring_inputs import BRING_INPUTS
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.expr import Axis, Index, Load
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

NODE = helper.make_node
KINDS = ("padded", "pooled", "scores", "channels last", "twice", "upsampled")


def model_of(kind: str, channels: int, size: int, outputs: int = 20) -> onnx.ModelProto:
    """What reads an input with a border around it, or pixel by pixel; `twice` does both."""
    rng = np.random.default_rng([channels, outputs])
    weights = {
        "w1": (rng.standard_normal((outputs, channels, 1, 1)) / channels**0.5).astype(np.float32),
        "double": np.float32([1, 1, 2, 2]),
        "w3": (rng.standard_normal((outputs, channels, 3, 3)) / channels**0.5 / 3).astype(np.float32),
    }
    point = [NODE("Conv", ["x", "w1"], ["c"]), NODE("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1])]
    padded = NODE("Conv", ["x", "w3"], ["p"], pads=[1] * 4)
    nodes, results = {
        "padded": ([padded], ["p"]),
        "pooled": ([NODE("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)], ["y"]),
        "scores": ([point[0], NODE("Softmax", ["c"], ["y"], axis=1)], ["y"]),
        "channels last": (point, ["y"]),
        "twice": ([padded, *point], ["p", "y"]),
        "upsampled": ([NODE("Resize", ["x", "", "double"], ["y"], mode="linear")], ["y"]),
    }[kind]
    return make_model(nodes, {"x": (1, channels, size, size)}, results, weights)


@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(KINDS), channels=st.integers(1, 140), size=st.integers(2, 70), outputs=st.integers(1, 40),
    precision=st.sampled_from(PRECISIONS),
)  # fmt: skip
@example(kind="scores", channels=32, size=128, outputs=21, precision=("inf2", "all"))
@example(kind="channels last", channels=20, size=128, outputs=9, precision=("inf2", "none"))
@example(kind="padded", channels=64, size=40, outputs=9, precision=("inf1", "all"))
@example(kind="pooled", channels=64, size=40, outputs=9, precision=("inf2", "none"))
@example(kind="upsampled", channels=32, size=128, outputs=1, precision=("inf2", "all"))
@example(kind="twice", channels=20, size=128, outputs=9, precision=("inf2", "all"))
def test_as_onnxruntime(kind: str, channels: int, size: int, outputs: int, precision: tuple[str, str]) -> None:
    model = model_of(kind, channels, size, outputs)
    check(model, random_inputs(model), *precision)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    ("kind", "size"), [("padded", 56), ("pooled", 56), ("scores", 128), ("channels last", 128), ("upsampled", 128)]
)
def test_no_row_takes_a_descriptor(kind: str, size: int, chip: str) -> None:
    """They took 4 to 90 times as long as DRAM needs for what is read and written."""
    report = tvm_neuron.report(tvm_neuron.compile(model_of(kind, 64, size), target=f"neuron/{chip}"))
    assert not report.placed("cpu")
    assert report.latency_us < 7 * report.roofline_us


@pytest.mark.parametrize("kind", ["scores", "channels last"])
def test_the_array_reads_copies_of_what_strips_would_take_in_columns(kind: str) -> None:
    model = model_of(kind, 64, 128)
    found = tvm_neuron.report(tvm_neuron.compile(model, target="neuron/inf2")).latency_us
    with without(BRING_INPUTS.name):
        usual = tvm_neuron.report(tvm_neuron.compile(model, target="neuron/inf2")).latency_us
    assert found < usual


def test_strips_cut_the_axis_that_leaves_the_least_to_be_moved() -> None:
    """Halves of the first axis would read all of the data again; those of the second read a half each."""
    rows, outer, inner = Axis("r", 128), Axis("o", 8), Axis("i", 64)
    x, y = Tensor("x", (128, 64), "float32", kind="input"), Tensor("y", (128, 8, 64), "float32")
    maps = Linear(0, {rows: 1}), Linear(0, {outer: 1}), Linear(0, {inner: 1})
    kernel = Kernel((), y, maps, rows, (outer, inner), Load(x, (Index(rows), Index(inner))))
    partition_of, dtypes = {x: 0, y: 0}, {x: "float32", y: "float32"}
    found = strip_loads(kernel, partition_of, dtypes, {x}, 128, load_device("inf2"))
    assert strip_bytes(kernel, partition_of, dtypes, 128 * 9, load_device("inf2")) <= 128 * 9
    strips_cycles, whole_cycles = found[x]
    assert strips_cycles < 3 * whole_cycles  # two halves in short rows
