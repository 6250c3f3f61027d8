"""POOL computes a part of a depthwise convolution that it would else be idle for, as exactly as the PE array."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.codegen.graphs import layer
from tests.models.agreement import Case, random_inputs, relative_error
from tests.stages.networks import compile_model, run
from tvm_neuron.isa import Matmul, ScalarTensorTensor
from tvm_neuron.neff import Neff


def network(
    channels: int, size: int, kernel: int = 3, batch: int = 1, function: str = "Relu", **attributes: list[int]
) -> onnx.ModelProto:
    rng = np.random.default_rng([channels, size, kernel])
    weights = rng.standard_normal((channels, 1, kernel, kernel)).astype(np.float32) / kernel
    bias = rng.standard_normal(channels).astype(np.float32)
    shape = (batch, channels, size, size)
    pads = [kernel // 2] * 4
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("Conv", ["s", "w", "b"], ["c"], group=channels, pads=pads, **attributes),
        helper.make_node(function, ["c"], ["f"]),
        helper.make_node("Conv", ["f", "last"], ["y"]),
    ]
    last = rng.standard_normal((16, channels, 1, 1)).astype(np.float32) / channels**0.5
    return layer(nodes, shape, w=weights, b=bias, last=last)


def sums(compiled: Neff) -> tuple[int, int]:
    """Products of the array and sums of POOL for the depthwise convolution."""
    names = compiled.program.origins
    listed = [(n, found) for n, found in compiled.program.instructions() if names[found.origin].name == "Conv_1"]
    return tuple(
        sum(int(np.prod(counts)) for counts, found in listed if isinstance(found, kind))
        for kind in (Matmul, ScalarTensorTensor)
    )  # type: ignore[return-value]


@pytest.mark.parametrize("mode", ["nest", "strict"])
@pytest.mark.parametrize(
    ("channels", "size", "kernel", "batch", "attributes"),
    [
        (1152, 7, 5, 1, {}),
        (768, 14, 3, 1, {}),
        (960, 7, 3, 1, {}),  # the last tile has 64 channels
        (256, 28, 3, 1, {}),
        (256, 56, 3, 1, {"strides": [2, 2]}),
        (512, 14, 3, 1, {"dilations": [2, 2]}),
        (1024, 7, 3, 3, {}),
    ],
)
def test_as_onnxruntime(
    channels: int, size: int, kernel: int, batch: int, attributes: dict[str, list[int]], mode: str
) -> None:
    model = network(channels, size, kernel, batch, **attributes)
    case = Case(model, random_inputs(model))
    compiled = compile_model(model, "neuron/inf2")
    assert sums(compiled)[1] > 0
    found = run(compiled, case.inputs, mode)["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]


def test_two_of_nine_tiles_of_few_positions() -> None:
    """Both take 64 cycles for a step of a tile, POOL in a clock 2.5 times as slow."""
    assert sums(compile_model(network(1152, 7, 5), "neuron/inf2")) == (7 * 25, 2 * 24)


def test_parts_of_a_tile() -> None:
    """Of two tiles of 784 positions POOL takes two quarters of one, which take turns; the array takes two at a time."""
    assert sums(compile_model(network(256, 28), "neuron/inf2")) == (3 * 9, 2 * 8)


def test_not_where_the_last_channels_are_made_too_late() -> None:
    """POOL adds in 1.58 us what takes the array 0.63 of its 1.89, but the data are there 0.37 after the first ones."""
    assert sums(compile_model(network(384, 14), "neuron/inf2")) == (3 * 9, 0)


def test_not_where_pool_brings_results_out_or_makes_the_tiles() -> None:
    assert sums(compile_model(network(768, 14, function="HardSigmoid"), "neuron/inf2"))[1] == 0
    assert sums(compile_model(network(768, 14), "neuron/inf1"))[1] == 0
