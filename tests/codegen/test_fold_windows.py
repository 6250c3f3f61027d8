"""Large depthwise windows by several rows at once, between operators that read and write images otherwise."""

from unittest import mock

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import tvm_neuron
from tests.codegen.graphs import graph_of
from tests.onnx_models import make_model
from tvm_neuron import BuildOptions, relay
from tvm_neuron.codegen.kernels import fold_windows
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import Device, load_device
from tvm_neuron.schedule.kernel import Contraction, Kernel
from tvm_neuron.schedule.rule import load_rules

Arrays = dict[str, np.ndarray]


def norm_of_window(
    channels: int, rows: int, columns: int, size: int, stride: int = 1, dilation: int = 1, batch: int = 1
) -> tuple[onnx.ModelProto, Arrays]:
    """A depthwise window of an image, and a norm over channels, which reads pixels one by one."""
    rng = np.random.default_rng(channels + rows)
    weights: Arrays = {
        "w": rng.standard_normal((channels, 1, size, size)).astype(np.float32) / size,
        "b": rng.standard_normal(channels).astype(np.float32),
        "s": rng.uniform(0.5, 1.5, channels).astype(np.float32),
    }
    around = dilation * (size - 1) // 2
    window = helper.make_node(
        "Conv", ["r", "w", "b"], ["c"], "window", group=channels, pads=[around] * 4, strides=[stride] * 2,
        dilations=[dilation] * 2,
    )  # fmt: skip
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        window,
        helper.make_node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("LayerNormalization", ["t", "s"], ["n"]),
        helper.make_node("Transpose", ["n"], ["y"], perm=[0, 3, 1, 2]),
    ]
    shape = (batch, channels, rows, columns)
    x = rng.standard_normal(shape).astype(np.float32)
    return make_model(nodes, {"x": shape}, ["y"], weights), {"x": x}


def windows(model: onnx.ModelProto, mode: str = "all") -> list[Kernel]:
    """The kernels that the window becomes."""
    made = make_kernels(graph_of(model), load_rules(), load_device("inf2"), Precisions(mode))[0]
    return [kernel for kernel in made if kernel.origins[0].name == "window"]


def error(model: onnx.ModelProto, inputs: Arrays, mode: str, chip: str = "inf2") -> float:
    """Relative to the largest element of what onnxruntime finds."""
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, f"neuron/{chip}", params=params, options=BuildOptions(fp32_cast=mode))
    assert not tvm_neuron.report(library).placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(**inputs)
    return float(np.abs(executor.get_output(0).numpy() - wanted).max() / np.abs(wanted).max())


def is_folded(kernels: list[Kernel]) -> bool:
    return any(kernel.out.name.endswith(".by_rows") for kernel in kernels)


_ROUNDED = 2.0**-6  # two tensors and the products are rounded to bfloat16, 2^-9 each, of sums of up to 81 terms
_EXACT = 2e-5  # sums in float32 in another order, before a norm


@pytest.mark.parametrize(
    ("chip", "mode", "most"), [("inf1", "all", _ROUNDED), ("inf2", "all", _ROUNDED), ("inf2", "none", _EXACT)]
)
@pytest.mark.parametrize(
    ("channels", "rows", "columns", "size", "options"),
    [
        (96, 32, 32, 7, {}),
        (144, 30, 20, 7, {}),  # a piece of 16 channels, and 30 rows are no multiple of 4
        (96, 33, 24, 7, {}),  # rows that nobody reads
        (100, 40, 36, 5, {"stride": 2}),
        (80, 28, 28, 5, {"dilation": 2, "batch": 2}),
    ],
)
def test_what_it_computes(
    chip: str, mode: str, most: float, channels: int, rows: int, columns: int, size: int, options: dict[str, int]
) -> None:
    model, inputs = norm_of_window(channels, rows, columns, size, **options)
    assert error(model, inputs, mode, chip) < most


@pytest.mark.parametrize(
    ("mode", "size", "folded"),
    [
        ("all", 7, True),
        ("none", 7, True),
        ("matmult", 7, False),  # sums would be rounded that are to stay float32
        ("all", 3, False),  # 9 matmuls, and as many with what lays out and brings back
    ],
)
def test_which_windows_are_folded(mode: str, size: int, folded: bool) -> None:
    model, _ = norm_of_window(96, 64, 64, size)
    assert is_folded(windows(model, mode)) == folded


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_whatever_the_window(data: st.DataObject) -> None:
    """Folded wherever that can be, quicker or not, and right in float32."""
    forms = [(3, 1, 1), (3, 2, 1), (5, 1, 1), (5, 2, 1), (3, 1, 2), (7, 1, 1)]
    size, stride, dilation = data.draw(st.sampled_from(forms))
    channels, batch = data.draw(st.integers(65, 200)), data.draw(st.integers(1, 2))  # of fewer, whole networks are
    rows, columns = data.draw(st.integers(10, 26)), data.draw(st.integers(8, 20))
    model, inputs = norm_of_window(channels, rows, columns, size, stride, dilation, batch)
    by = data.draw(st.sampled_from([2, 4]))
    with (
        mock.patch.object(fold_windows, "_ROWS_AT_ONCE", (by,)),
        mock.patch.object(fold_windows, "_time_ps", _longer),
        mock.patch.object(fold_windows._Folded, "least_ps", return_value=0.0),
    ):
        assert is_folded(windows(model, "none"))
        assert error(model, inputs, "none") < _EXACT


@pytest.mark.parametrize("channels", [65, 96, 144, 200])
@pytest.mark.parametrize(("size", "stride", "dilation"), [(3, 1, 1), (5, 2, 1), (5, 1, 2), (7, 1, 1)])
def test_no_price_is_below_the_least(channels: int, size: int, stride: int, dilation: int) -> None:
    """What is left out unmade for its least would be left out for its price."""
    model, _ = norm_of_window(channels, 33, 30, size, stride, dilation)
    device = load_device("inf2")
    with without("fold_windows", "pack_columns", "split_outputs", "widen_outputs"):
        kernels, partition_of = make_kernels(graph_of(model), load_rules(), device)
    (kernel,) = [k for k in kernels if k.origins[0].name == "window" and isinstance(k.root, Contraction)]
    window = fold_windows._window(kernel, partition_of)
    assert window is not None
    assert isinstance(kernel.root, Contraction)
    for by in (2, 4):
        way = fold_windows._Folded(kernel, kernel.root, window, by)
        assert 0 < way.least_ps(device) <= sum(fold_windows._time_ps(made, device) for made in way.kernels())


def _longer(kernel: Kernel, _device: Device) -> float:
    """A price at which anything folded is cheaper."""
    return 0.0 if any(tensor.name.endswith(".by_rows") for tensor in kernel.tensors) else 1.0
