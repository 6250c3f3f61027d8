"""Pads that add and cut, down to dimensions of one element: all on the core, as onnxruntime has them."""

from collections import Counter
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.isa import DmaCopy, GpsimdMemset, Memset
from tvm_neuron.program.program import walk


@st.composite
def pads(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """A shape, and what is added (or cut, where it is below 0) before and after each dimension; something is left."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    before = [draw(st.integers(1 - extent, 2)) for extent in shape]
    after = [draw(st.integers(1 - extent - min(low, 0), 2)) for extent, low in zip(shape, before, strict=True)]
    return shape, before + after


@settings(max_examples=12)
@given(case=pads(), dtype=st.sampled_from(["float32", "int32"]), chip=st.sampled_from(["inf1", "inf2"]))
def test_as_onnxruntime(case: tuple[list[int], list[int]], dtype: str, chip: str) -> None:
    shape, added = case
    number = np.dtype(dtype).type(6)
    kind = helper.np_dtype_to_tensor_dtype(number.dtype)
    node = helper.make_node("Pad", ["x", "p", "fill"], ["y"])
    model = make_model([node], {"x": shape}, ["y"], {"p": np.array(added), "fill": number}, dtype=kind)
    values = np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(dtype)
    check(model, {"x": values}, chip, "all", roundings=0)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_a_long_border_is_written_once_and_stored_often(chip: str) -> None:
    """Of a tensor that lies in device memory; each strip of it has the same numbers."""
    node = helper.make_node("Pad", ["x", "p", "fill"], ["y"])
    added = {"p": np.int64([0, 0, 0, 0, 0, 150_000]), "fill": np.float32(1.5)}
    model = make_model([node], {"x": (4, 2, 300)}, ["y"], added)
    counts = Counter[type]()
    for turns, instruction in walk(compile_model(model, f"neuron/{chip}").program.body):
        counts[type(instruction)] += prod(turns)
    assert counts[DmaCopy] > 100
    assert counts[Memset] + counts[GpsimdMemset] < counts[DmaCopy] / 4
    values = np.random.default_rng(7).integers(-9, 9, (4, 2, 300)).astype(np.float32)
    check(model, {"x": values}, chip, "all", roundings=0)
