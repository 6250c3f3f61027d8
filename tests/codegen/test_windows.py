"""Maxima of large windows: along one dimension first, then along the other, with the same numbers."""

from math import prod

import ml_dtypes
import numpy as np
import onnx
import pytest
import tvm
from onnx import helper

from tests.codegen.graphs import graph_of
from tests.onnx_models import make_model, reference
from tvm_neuron import relay
from tvm_neuron.codegen.passes.windows import split_windows


def pooled(window: tuple[int, int], **attributes: list[int]) -> onnx.ModelProto:
    """A max pool of two images."""
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=window, **attributes)
    return make_model([node], {"x": (2, 130, 19, 21)}, ["y"], {})


CASES = {
    "spatial pyramid": pooled((13, 13), pads=[6] * 4, strides=[1, 1]),
    "oblong, padded on one side": pooled((5, 7), pads=[0, 3, 2, 0], strides=[1, 1]),
    "strides": pooled((9, 9), pads=[4] * 4, strides=[2, 3]),
    "dilated": pooled((5, 5), dilations=[1, 3], strides=[1, 1]),
}


def looked_at(model: onnx.ModelProto, split: bool) -> tuple[int, int]:
    """(blocks that find maxima, elements that they look at)."""
    graph = graph_of(model)
    if split:
        split_windows(graph)
    blocks = [block for block in graph.blocks if block.combine == "max"]
    return len(blocks), sum(prod(axis.extent for axis in block.axes) for block in blocks)


@pytest.mark.parametrize("name", CASES)
def test_the_same_maxima_of_fewer_elements(name: str) -> None:
    (_, whole), (count, apart) = (looked_at(CASES[name], split) for split in (False, True))
    assert count == 2
    assert apart <= whole / 2


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("name", CASES)
def test_as_onnxruntime(name: str, chip: str) -> None:
    """To the bit: the inputs are numbers of bfloat16, and a maximum rounds nothing."""
    x = np.random.default_rng(1).standard_normal((2, 130, 19, 21)) - 3
    x = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    mod, params = relay.frontend.from_onnx(CASES[name])
    executor = relay.build(mod, target=f"neuron/{chip}", params=params)["default"](tvm.cpu())
    executor.set_input("x", x)
    executor.run()
    np.testing.assert_array_equal(executor.get_output(0).numpy(), reference(CASES[name], {"x": x})[0])


def test_small_windows_stay_whole() -> None:
    """Three by three, and a window that moves by its own size, would look at more than half of the elements."""
    for model in (pooled((3, 3), strides=[1, 1]), pooled((3, 3), strides=[3, 3])):
        assert looked_at(model, split=True) == looked_at(model, split=False)
