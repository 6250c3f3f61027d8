"""Images of few channels side by side, from amid the partitions on, interleaved or padded: beside onnxruntime."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import PRECISIONS, check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.isa import DmaCopy


def ghosts(few: int, more: int, size: int, is_shuffled: bool = False) -> onnx.ModelProto:
    """A convolution's `few` channels, and `more` made of these, side by side before another convolution."""
    rng, node = np.random.default_rng(few), helper.make_node
    groups = few if more % few == 0 else 1
    both = few + more

    def weight(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(shape).astype(np.float32) / np.float32(np.prod(shape[1:]) ** 0.5)

    weights = {"w1": weight(few, 3, 3, 3), "w2": weight(more, few // groups, 3, 3), "w3": weight(8, both, 3, 3)}
    nodes = [
        node("Conv", ["x", "w1"], ["a"], pads=[1] * 4), node("Relu", ["a"], ["few"]),
        node("Conv", ["few", "w2"], ["b"], pads=[1] * 4, group=groups), node("Relu", ["b"], ["more"]),
        node("Concat", ["few", "more"], ["both"], axis=1),
    ]  # fmt: skip
    if is_shuffled:
        weights |= {"apart": np.int64([1, 2, both // 2, size, size]), "joined": np.int64([1, both, size, size])}
        nodes += [
            node("Reshape", ["both", "apart"], ["g"]), node("Transpose", ["g"], ["t"], perm=[0, 2, 1, 3, 4]),
            node("Reshape", ["t", "joined"], ["image"]),
        ]  # fmt: skip
    last = "image" if is_shuffled else "both"
    nodes += [
        node("MaxPool", [last], ["p"], kernel_shape=[3, 3], pads=[1] * 4),
        node("Conv", ["p", "w3"], ["y"], pads=[1] * 4),
    ]
    return make_model(nodes, {"x": (1, 3, size, size)}, ["y"], weights)


def image(size: int) -> dict[str, np.ndarray[Any, Any]]:
    """A random one."""
    return {"x": np.random.default_rng(size).standard_normal((1, 3, size, size)).astype(np.float32)}


@pytest.mark.slow
@settings(max_examples=5)
@example(4, 4, 16, True, ("inf2", "none"))
@given(st.integers(1, 40), st.integers(1, 20), st.sampled_from([8, 16]), st.just(False), st.sampled_from(PRECISIONS))
def test_images_side_by_side(few: int, more: int, size: int, is_shuffled: bool, precision: tuple[str, str]) -> None:
    check(ghosts(few, more, size, is_shuffled), image(size), *precision)


def test_rows_are_folded_across_them() -> None:
    model = ghosts(4, 4, 32)
    summed = _moves(model)
    with without("sum_parts"):
        assert summed < _moves(model)
    check(model, image(32), "inf2", "all")


def _moves(model: onnx.ModelProto) -> int:
    """Transfers within the core."""
    program = compile_model(model, "neuron/inf2").program
    copies = [each for _, each in program.instructions() if isinstance(each, DmaCopy)]
    return sum(copy.target.__class__ is copy.source.__class__ for copy in copies)
