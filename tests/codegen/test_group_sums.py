"""Norms of groups of channels: beside onnxruntime, and as sums of the PE array's where that multiplies float32."""

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import PRECISIONS, check, on_core
from tests.onnx_models import Arrays, make_model, reference
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Matmul
from tvm_neuron.sim import time_program

INF2 = load_device("inf2")


@dataclass(frozen=True)
class Case:
    """A norm behind a convolution and before another one; `reads_groups`: something else reads its groups' means."""

    groups: int = 16
    each: int = 4
    size: int = 16
    batch: int = 1
    reads_groups: bool = False

    @property
    def channels(self) -> int:
        return self.groups * self.each


def network(case: Case) -> onnx.ModelProto:
    """As torch exports a GroupNorm: instances of groups, and a scale and shift by channel."""
    random, channels = np.random.default_rng(3), case.channels
    shape = (case.batch, channels, case.size, case.size)
    weights = {name: random.standard_normal((channels, 8, 1, 1)).astype(np.float32) for name in ("w",)}
    weights["v"] = (random.standard_normal((8, channels, 1, 1)) / channels**0.5).astype(np.float32)
    weights |= {name: random.standard_normal((channels, 1, 1)).astype(np.float32) for name in ("scale", "shift")}
    weights |= {"ones": np.ones(case.groups, np.float32), "zeros": np.zeros(case.groups, np.float32)}
    weights |= {"grouped": np.int64([case.batch, case.groups, -1]), "whole": np.int64(shape)}
    weights["last"] = np.int64([2])
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Reshape", ["c", "grouped"], ["g"]),
        helper.make_node("InstanceNormalization", ["g", "ones", "zeros"], ["n"]),
        helper.make_node("Reshape", ["n", "whole"], ["r"]),
        helper.make_node("Mul", ["r", "scale"], ["m"]),
        helper.make_node("Add", ["m", "shift"], ["a"]),
        helper.make_node("Conv", ["a", "v"], ["y"]),
    ]
    outputs = ["y"]
    if case.reads_groups:
        nodes += [helper.make_node("ReduceMean", ["g", "last"], ["mean"], keepdims=0)]
        nodes += [helper.make_node("Sigmoid", ["mean"], ["s"])]
        outputs.append("s")
    return make_model(nodes, {"x": (case.batch, 8, case.size, case.size)}, outputs, weights)


def inputs(case: Case) -> Arrays:
    """Far from 0, so that means that were rounded to bfloat16 would be seen."""
    x = np.random.default_rng(1).standard_normal((case.batch, 8, case.size, case.size)) + 3
    return {"x": x.astype(np.float32)}


CASES = st.builds(Case, st.integers(1, 40), st.integers(1, 9), st.integers(2, 9), st.integers(1, 5), st.booleans())


@given(CASES, st.sampled_from(PRECISIONS))
@settings(max_examples=12)
def test_norms(case: Case, precision: tuple[str, str]) -> None:
    """What is subtracted may be some times what is left, and so is what rounds the operands of the first product."""
    check(network(case), inputs(case), *precision, roundings=40)


@pytest.mark.parametrize(
    ("case", "chip", "by_array"),
    [
        (Case(), "inf2", True),
        (Case(32, 10, 8), "inf2", True),  # 320 channels, of which some groups lie on two chunks of partitions
        (Case(batch=4), "inf2", True),
        (Case(batch=5), "inf2", False),  # too many columns
        (Case(64, 8, 4), "inf2", False),  # too many channels
        (Case(), "inf1", False),  # whose array multiplies no float32
    ],
)
def test_the_array_adds_up_where_it_can(case: Case, chip: str, by_array: bool) -> None:
    """In float32, whatever else it multiplies in, and in less time."""
    with without("group_sums"):
        usual = compile_model(network(case), f"neuron/{chip}").program
    found = compile_model(network(case), f"neuron/{chip}").program
    sums = [i for _, i in found.instructions() if isinstance(i, Matmul) and i.stationary.dtype == "float32"]
    before, after = (time_program(program, load_device(chip)).total_ps for program in (usual, found))
    assert bool(sums) == by_array
    assert after < before if by_array else after == before


def test_groups_that_are_read_as_such() -> None:
    """A pool by group, which leaves nothing for the channels of a group to read, stays what it is."""
    case = Case(reads_groups=True)
    check(network(case), inputs(case), "inf2", "all", roundings=40)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_rows_are_gone_over_once_for_all_scales(chip: str) -> None:
    """A row's own scale and the model's are multiplied first: distances, their squares, and then all at once."""
    case = Case()
    program = compile_model(network(case), f"neuron/{chip}").program
    elems = case.size * case.size
    found = [i.mnemonic for _, i in program.instructions() if i.engine == "act" and i.tiles()[0][2].free_elems == elems]
    assert found.count("activation") - 1 == 2  # the third brings out what the last product makes
    assert found.count("activation_reduce") == 1


@pytest.mark.parametrize("is_mixed", [False, True])
def test_what_is_infinite_stays_in_its_group(is_mixed: bool) -> None:
    """A matrix that adds up groups has zeros, by which infinity is NaN: taken where all groups are infinite anyway."""
    random, shape = np.random.default_rng(5), (1, 24, 4, 4)
    weights = {"w": random.standard_normal((24, 24, 1, 1)).astype(np.float32)} if is_mixed else {}
    weights |= {"ones": np.ones(6, np.float32), "zeros": np.zeros(6, np.float32)}
    weights |= {"grouped": np.int64([1, 6, -1]), "whole": np.int64(shape)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]) if is_mixed else helper.make_node("Relu", ["x"], ["c"]),
        helper.make_node("Reshape", ["c", "grouped"], ["g"]),
        helper.make_node("InstanceNormalization", ["g", "ones", "zeros"], ["n"]),
        helper.make_node("Reshape", ["n", "whole"], ["y"]),
    ]
    model = make_model(nodes, {"x": shape}, ["y"], weights)
    x = random.standard_normal(shape).astype(np.float32)
    x[0, 5, 1, 2] = np.inf
    (wanted,), (found,) = reference(model, {"x": x}), on_core(model, {"x": x}, "inf2")
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    assert np.isfinite(wanted).any() != is_mixed


def group_spreads(groups: int, each: int, size: int, reads_channels: bool) -> onnx.ModelProto:
    """As EvoNorm has it: images divided by the deviation, or the root mean square, of groups of their channels.

    Means are taken over three dimensions at once; squares are of channels, or of groups' channels less their means.
    """
    squares = "squares = Mul(c, c)  apart = Reshape(squares, parts)"
    if not reads_channels:
        squares = "g = Reshape(c, parts)  mean = ReduceMean(g, axes)  less = Sub(g, mean)  apart = Mul(less, less)"
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 19]> g (float[1, 3, {size}, {size}] x)
        => (float[1, {groups * each}, {size}, {size}] y) <
        int64[5] parts = {{ 1, {groups}, {each}, {size}, {size} }}, int64[3] axes = {{ 2, 3, 4 }},
        int64[5] spread = {{ 1, {groups}, {each}, 1, 1 }}, int64[4] channels = {{ 1, {groups * each}, 1, 1 }} > {{
        c = Conv<pads = [1, 1, 1, 1]>(x, w)  {squares}  of_group = ReduceMean(apart, axes)  root = Sqrt(of_group)
        all = Expand(root, spread)  by = Reshape(all, channels)  y = Div(c, by) }}"""
    )
    w = np.random.default_rng(6).standard_normal((groups * each, 3, 3, 3)).astype(np.float32) / 5
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    return model


@pytest.mark.parametrize(("chip", "fp32_cast"), PRECISIONS)
@pytest.mark.parametrize(("groups", "each", "size"), [(4, 16, 17), (3, 5, 12), (40, 16, 9), (72, 16, 4)])
@pytest.mark.parametrize("reads_channels", [True, False])
def test_means_over_channels_and_pixels(
    reads_channels: bool, groups: int, each: int, size: int, chip: str, fp32_cast: str
) -> None:
    """More than are summed on one partition: each channel's pixels first, and then the channels of a group."""
    x = np.random.default_rng(7).standard_normal((1, 3, size, size)).astype(np.float32)
    check(group_spreads(groups, each, size, reads_channels), {"x": x}, chip, fp32_cast)
