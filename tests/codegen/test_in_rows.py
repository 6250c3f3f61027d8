"""Rows that are as long in either layout are moved by DMA where the PE array would turn few channels at a time."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.precision import DEFAULT
from tvm_neuron.codegen.simplify import kernels_by_layout
from tvm_neuron.codegen.tuning import USUAL
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Transpose
from tvm_neuron.schedule.kernel import Contraction, Kernel, Transposition
from tvm_neuron.schedule.rule import load_rules

PATCH = 8
ROUNDINGS = 8
"""Both operands of two products that resize and of a convolution are rounded, and what is between them."""


def _patches(rows: int, columns: int, batch: int = 1, channels: int = 3) -> onnx.ModelProto:
    """Patches of an image and of a smaller one made of it, as networks look at images that look at several sizes."""
    rng = np.random.default_rng(5)
    weights = rng.standard_normal((2, 24, channels, PATCH, PATCH)).astype(np.float32) / PATCH
    smaller = [batch, channels, rows - PATCH, columns - PATCH]
    window = {"strides": [PATCH, PATCH], "kernel_shape": [PATCH, PATCH]}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["y0"], "large", **window),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["r"], "smaller", mode="cubic"),
        helper.make_node("Conv", ["r", "w1"], ["y1"], "small", **window),
        helper.make_node("Flatten", ["y0"], ["flat0"], "flatten_large"),
        helper.make_node("Flatten", ["y1"], ["flat1"], "flatten_small"),
        helper.make_node("Concat", ["flat0", "flat1"], ["y"], "together", axis=1),
    ]
    constants = {"w0": weights[0], "w1": weights[1], "sizes": np.array(smaller)}
    return make_model(nodes, {"x": (batch, channels, rows, columns)}, ["y"], constants)


def _ways(model: onnx.ModelProto) -> list[list[Kernel]]:
    found = kernels_by_layout(graph_of(model), load_rules(), load_device("inf2"), DEFAULT, USUAL, is_quick=False)
    return [kernels for kernels, _ in found]


def _turned(kernels: list[Kernel]) -> list[Kernel]:
    return [kernel for kernel in kernels if isinstance(kernel.root, Transposition)]


@pytest.mark.parametrize(("chip", "fp32_cast"), PRECISIONS)
@pytest.mark.parametrize("shape", [(96, 80, 1), (48, 160, 2)], ids=["one image", "two images"])
def test_a_resized_image_as_onnxruntime(shape: tuple[int, int, int], chip: str, fp32_cast: str) -> None:
    model = _patches(*shape)
    x = np.random.default_rng(7).standard_normal((shape[2], 3, *shape[:2])).astype(np.float32)
    check(model, {"x": x}, chip, fp32_cast, ROUNDINGS)


def test_no_image_of_three_channels_is_turned_by_the_array() -> None:
    """It would leave the PE array on 3 partitions, or come from DRAM on 3."""
    usual, *_, by_dma = _ways(_patches(160, 160))
    assert min(kernel.channel.extent for kernel in _turned(usual)) == 3
    turned = _turned(by_dma)
    assert turned, "rows are put in order by the array"
    assert min(kernel.channel.extent for kernel in turned) > 100
    assert not any(source.kind == "input" for kernel in turned for source in kernel.sources())


def test_the_clock_finds_that_quicker() -> None:
    program = compile_model(_patches(160, 160), "neuron/inf2").program
    turned = [part.psum.partitions for _, part in program.instructions() if isinstance(part, Transpose)]
    assert turned
    assert min(turned) > 3


def test_an_input_of_several_readers_is_packed_for_each() -> None:
    """Both convolutions multiply several rows of their windows at once."""
    *_, by_dma = _ways(_patches(160, 160))
    patches = [kernel.root for kernel in by_dma if isinstance(kernel.root, Contraction) and kernel.channel.extent == 24]
    assert len(patches) == 2
    assert min(root.weights.shape[0] for root in patches) >= 3 * PATCH
