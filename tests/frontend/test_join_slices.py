"""Convolutions of slices of channels whose results lie side by side are one, as where kernels of several sizes mix."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.frontend.test_join_convolutions import Arrays, check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.isa import Matmul
from tvm_neuron.program.dynamic import expand

Part = tuple[int, int, int, int]  # inputs, outputs, groups, size of the kernel


def mixed(
    parts: list[Part], side: int, stride: int = 1, bias: bool = True, by_slices: bool = False, kept: int = 0
) -> onnx.ModelProto:
    """Convolutions of the channels' parts in order, side by side; `kept` channels before them as they are."""
    rng = np.random.default_rng(len(parts))
    widths = [kept] * (kept > 0) + [part[0] for part in parts]
    names = [f"s{at}" for at in range(len(widths))]
    weights: Arrays = {"sizes": np.array(widths, np.int64), "axis": np.array([1], np.int64)}
    nodes = [helper.make_node("Relu", ["x"], ["r"])]
    if by_slices:
        ends = np.cumsum(widths)
        for name, width, end in zip(names, widths, ends, strict=True):
            weights |= {f"{name}from": np.array([end - width]), f"{name}to": np.array([end])}
            nodes.append(helper.make_node("Slice", ["r", f"{name}from", f"{name}to", "axis"], [name]))
    else:
        nodes.append(helper.make_node("Split", ["r", "sizes"], names, axis=1))
    results = names[: kept > 0]
    for name, (inputs, outputs, groups, size) in zip(names[kept > 0 :], parts, strict=True):
        shape = (outputs, inputs // groups, size, size)
        weights[f"{name}w"] = (rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)
        weights |= {f"{name}b": rng.standard_normal(outputs).astype(np.float32)} if bias else {}
        data = [name, f"{name}w", *([f"{name}b"] if bias else [])]
        common = {"group": groups, "pads": [size // 2] * 4, "strides": [stride] * 2}
        nodes.append(helper.make_node("Conv", data, [f"{name}c"], name=f"conv_{name}", **common))
        results.append(f"{name}c")
    nodes.append(helper.make_node("Concat", results, ["y"], axis=1))
    return make_model(nodes, {"x": (1, sum(widths), side, side)}, ["y"], weights)


@pytest.mark.parametrize("by_slices", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_groups_that_were_written_apart_are_one_convolution(bias: bool, by_slices: bool) -> None:
    macs, left = check(mixed([(6, 10, 1, 3)] * 4, 9, bias=bias, by_slices=by_slices))
    assert left[0] == "conv_s0"
    assert len(set(left)) == 1
    assert macs == 4 * 10 * 6 * 9 * 81


@pytest.mark.parametrize("stride", [1, 2])
def test_kernels_of_several_sizes_lie_amid_zeros(stride: int) -> None:
    """Where the array multiplies by no more tiles so; zeros are no multiplications asked for."""
    parts = [(64, 64, 64, 3), (64, 64, 64, 5), (128, 128, 128, 7)]
    macs, left = check(mixed(parts, 12, stride))
    assert set(left) == {"conv_s0"}
    assert macs == (64 * 9 + 64 * 25 + 128 * 49) * (12 // stride) ** 2


def test_tiles_leave_out_places_of_the_window_without_weights() -> None:
    """128 channels of 3 x 3 are a tile of 9 places, those of 7 x 7 beside them one of 49, each for all 400 pixels."""
    compiled = compile_model(mixed([(128, 128, 128, 3), (128, 128, 128, 7)], 20), "neuron/inf2")
    dynamic = expand(compiled.program)
    assert sum(isinstance(dynamic.statics[number], Matmul) for number in dynamic.number) == 9 + 49


def test_what_would_be_more_work_stays_apart() -> None:
    """A kernel of 3 x 3 and one of 11 x 11, whose channels would share tiles: 121 and 121 places, not 9 and 121."""
    _, left = check(mixed([(100, 100, 100, 3), (100, 100, 100, 11)], 12))
    assert set(left) == {"conv_s0", "conv_s1"}


def test_channels_that_are_only_copied_lie_beside() -> None:
    _, left = check(mixed([(32, 32, 32, 3), (32, 32, 32, 5)], 10, kept=8))
    assert set(left) == {"conv_s1"}


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_whatever_lies_side_by_side(data: st.DataObject) -> None:
    """Drawn parts, with one shape of groups or several, compared in float32."""
    inner, outer = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))
    groups = data.draw(st.lists(st.integers(1, 40), min_size=2, max_size=4))
    sizes = [data.draw(st.sampled_from([1, 3, 5])) for _ in groups]
    parts = [(inner * count, outer * count, count, size) for count, size in zip(groups, sizes, strict=True)]
    if data.draw(st.booleans()):
        parts.insert(data.draw(st.integers(0, len(parts))), (4, 6, 2, 3))
    stride = data.draw(st.integers(1, 2))
    kept = data.draw(st.integers(0, 5 if stride == 1 else 0))
    check(mixed(parts, data.draw(st.integers(5, 12)), stride, data.draw(st.booleans()), data.draw(st.booleans()), kept))


def test_a_slice_that_something_else_reads_is_still_sliced() -> None:
    model = mixed([(8, 8, 8, 3), (8, 8, 8, 3)], 8)
    model.graph.node.append(helper.make_node("Exp", ["s1"], ["e"]))
    model.graph.output.append(helper.make_tensor_value_info("e", onnx.TensorProto.FLOAT, (1, 8, 8, 8)))
    _, left = check(model)
    assert set(left) == {"conv_s0"}


def test_a_result_that_something_else_reads_stays() -> None:
    model = mixed([(8, 8, 8, 3), (8, 8, 8, 3)], 8)
    model.graph.output.append(helper.make_tensor_value_info("s1c", onnx.TensorProto.FLOAT, (1, 8, 8, 8)))
    _, left = check(model)
    assert set(left) == {"conv_s0", "conv_s1"}


def test_windows_whose_tiles_fill_half_of_sbuf_run_on_the_core() -> None:
    """11 x 11 places of 128 channels in float32 are 62 KB of each partition: POOL makes no such tiles beside others."""
    _, left = check(mixed([(144, 144, 144, 11)], 7))
    assert set(left) == {"conv_s0"}
