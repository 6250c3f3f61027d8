"""skip_padding: dilated convolutions keep their meaning, and their maps stay in SBUF."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.graphs import read_through_graph
from tests.codegen.interpreter import run_graph
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.codegen.passes.skip_padding import skip_padding
from tvm_neuron.hw import load_device
from tvm_neuron.schedule.expr import Num


def dilated(channels: int, outputs: int, size: int, dilation: int, stride: int = 1, width: int = 3) -> onnx.ModelProto:
    rng = np.random.default_rng(size + dilation)
    weights = {"w": (rng.standard_normal((outputs, channels, width, width)) / np.sqrt(9 * channels)).astype(np.float32)}
    attributes = {"dilations": [dilation] * 2, "pads": [dilation * (width // 2)] * 4, "strides": [stride] * 2}
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Conv", ["r", "w"], ["y"], kernel_shape=[width, width], **attributes),
    ]
    return make_model(nodes, {"x": (1, channels, size, size)}, ["y"], weights)


@settings(max_examples=10, deadline=None)
@given(
    size=st.integers(4, 12), dilation=st.integers(2, 14), stride=st.integers(1, 2), width=st.sampled_from([3, 5]),
)  # fmt: skip
@example(size=8, dilation=3, stride=1, width=3)
@example(size=8, dilation=12, stride=1, width=3)
def test_regions_keep_their_meaning(size: int, dilation: int, stride: int, width: int) -> None:
    graph = read_through_graph(dilated(3, 4, size, dilation, stride, width))
    x = {tensor.name: np.random.default_rng(size).standard_normal(tensor.shape) for tensor in graph.inputs}
    (output,) = graph.outputs
    before = run_graph(graph, x)[output]
    map_bytes, weights_bytes = aligned(2 * size**2), 2 * 2 * 64 * width**2
    skip_padding(graph, replace(load_device("inf1"), sbuf_bytes_per_partition=map_bytes + weights_bytes))
    np.testing.assert_allclose(run_graph(graph, x)[output], before, rtol=1e-9, atol=1e-12)
    assert not any(isinstance(block.expr, Num) for block in graph.blocks)


@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 1, 3, 2)])
def test_what_is_reshaped_into_a_map_stays_padded(shape: tuple[int, ...]) -> None:
    """It has other dimensions than the map, or lies otherwise on the partitions."""
    weights = {
        "s": np.array([1, 3, 1, 2], np.int64),
        "w": np.random.default_rng(0).standard_normal((4, 3, 1, 3)).astype(np.float32),
    }
    attributes = {"dilations": [1, 6], "pads": [0, 6, 0, 6]}
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("Conv", ["r", "w"], ["y"], **attributes)]
    graph = read_through_graph(make_model(nodes, {"x": shape}, ["y"], weights))
    count = len(graph.blocks)
    skip_padding(graph, replace(load_device("inf1"), sbuf_bytes_per_partition=2 * 64 + 2 * 2 * 64 * 3))
    assert len(graph.blocks) == count


def test_what_fits_stays_padded() -> None:
    graph = read_through_graph(dilated(3, 4, 8, 3))
    count = len(graph.blocks)
    skip_padding(graph, load_device("inf1"))
    assert len(graph.blocks) == count


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_no_map_goes_through_device_memory(chip: str) -> None:
    """A padded one of 2048 x 80 x 80 would; in strips of few positions it took a thousand times the array's time."""
    model = dilated(2048, 16, 32, 24)
    made = compile_model(model, f"neuron/{chip}")
    assert not any(tensor.kind == "scratch" for tensor in made.program.tensors)
    x = np.random.default_rng(0).standard_normal((1, 2048, 32, 32)).astype(np.float32)
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    # Of a sum of n products, each rounded to 2^-8 and all of them to a size of 1, the error grows as their square root.
    np.testing.assert_allclose(run(made, {"x": x}, "strict")["y"], wanted, atol=0.03)
