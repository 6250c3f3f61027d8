"""polyphase: transposed convolutions, and those of images that were enlarged, read the small image phase by phase."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from onnx import NodeProto, helper

import tvm_neuron
from tests.codegen.graphs import read_through_graph
from tests.codegen.interpreter import run_graph
from tests.onnx_models import make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.passes.polyphase import polyphase
from tvm_neuron.codegen.passes.unread import drop_unread
from tvm_neuron.codegen.steps import without
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.roles import is_constant_contraction

NODE = helper.make_node
Better = Callable[[Sequence[Block], Sequence[Block]], bool]
NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
TAIL = [NODE("Add", ["c", "b"], ["d"]), NODE("Relu", ["d"], ["e"]), NODE("Add", ["e", "z"], ["y"])]
"""A bias, a function, and what else comes in, element by element."""


def transposed(
    shape: list[int], outputs: int, kernel: int, groups: int = 1, **attributes: list[int]
) -> onnx.ModelProto:
    """A transposed convolution of what a Relu makes, and arithmetic on its results."""
    weight = _drawn(shape[1], outputs // groups, *[kernel] * len(shape[2:]))
    return _with_tail(shape, [NODE("ConvTranspose", ["r", "w"], ["c"], group=groups, **attributes)], weight, outputs)


def enlarged(shape: list[int], outputs: int, kernel: int, scales: list[int], stride: int = 1) -> onnx.ModelProto:
    """A convolution of an image whose pixels were repeated, and arithmetic on its results."""
    spatial = len(shape) - 2
    nodes = [
        NODE("Resize", ["r", "", "scales"], ["u"], **NEAREST),
        NODE("Conv", ["u", "w"], ["c"], pads=[kernel // 2] * 2 * spatial, strides=[stride] * spatial),
    ]
    weights = {"scales": np.array([1, 1, *scales], np.float32)}
    return _with_tail(shape, nodes, _drawn(outputs, shape[1], *[kernel] * spatial), outputs, weights)


def _with_tail(
    shape: list[int],
    nodes: list[NodeProto],
    weight: np.ndarray,
    outputs: int,
    more: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    bias = _drawn(outputs, *[1] * (len(shape) - 2))
    weights = {"w": weight} | (more or {})
    bare = make_model([NODE("Relu", ["x"], ["r"]), *nodes], {"x": shape}, ["c"], weights)
    (made,) = onnxruntime.InferenceSession(bare.SerializeToString()).run(None, {"x": np.zeros(shape, np.float32)})
    nodes = [NODE("Relu", ["x"], ["r"]), *nodes, *TAIL]
    return make_model(nodes, {"x": shape, "z": made.shape}, ["y"], weights | {"b": bias})


def _drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def _any(_: Sequence[Block], others: Sequence[Block]) -> bool:
    """What is tried last: phase by phase, of as many as there may be."""
    return True


def _together(_: Sequence[Block], others: Sequence[Block]) -> bool:
    """All phases as output channels."""
    return any(block.output.name.endswith(".phases") for block in others)


def _macs(graph: Graph) -> int:
    return sum(prod(axis.extent for axis in block.axes) for block in graph.blocks if is_constant_contraction(block))


def _check(model: onnx.ModelProto, is_better: Better = _any) -> tuple[int, int]:
    """The multiplications before and after, once the results are onnxruntime's."""
    graph = read_through_graph(model)
    x = {tensor.name: np.random.default_rng(3).standard_normal(tensor.shape) for tensor in graph.inputs}
    session = onnxruntime.InferenceSession(model.SerializeToString())
    wanted = session.run(None, {name: value.astype(np.float32) for name, value in x.items()})
    before = _macs(graph)
    polyphase(graph, is_better)
    drop_unread(graph)
    for output, each in zip(graph.outputs, wanted, strict=True):
        # float32's 2^-24 for each of some hundred products of a size of 1
        np.testing.assert_allclose(run_graph(graph, x)[output], each, rtol=1e-4, atol=1e-4)
    return before, _macs(graph)


@settings(max_examples=40, deadline=None)
@given(
    spatial=st.integers(1, 3), size=st.integers(2, 6), kernel=st.integers(1, 6), stride=st.integers(1, 4),
    pad=st.integers(0, 2), more=st.integers(0, 3), dilation=st.integers(1, 2), groups=st.sampled_from([1, 3]),
    way=st.sampled_from([_any, _together]),
)  # fmt: skip
@example(spatial=2, size=5, kernel=4, stride=2, pad=1, more=0, dilation=1, groups=1, way=_any)
@example(spatial=2, size=5, kernel=3, stride=2, pad=1, more=1, dilation=1, groups=1, way=_any)
@example(spatial=1, size=6, kernel=6, stride=4, pad=1, more=0, dilation=1, groups=3, way=_together)
@example(spatial=1, size=6, kernel=6, stride=4, pad=1, more=3, dilation=1, groups=1, way=_together)
@example(spatial=2, size=5, kernel=3, stride=2, pad=1, more=0, dilation=1, groups=1, way=_together)
@example(spatial=2, size=4, kernel=1, stride=2, pad=0, more=1, dilation=1, groups=1, way=_any)
def test_transposed_convolutions_keep_their_meaning(
    spatial: int, size: int, kernel: int, stride: int, pad: int, more: int, dilation: int, groups: int, way: Better
) -> None:
    assume(more < stride and (size - 1) * stride + dilation * (kernel - 1) + 1 + more > 2 * pad)
    shape = [1, 3, size, *[3] * (spatial - 1)]
    before, after = _check(
        transposed(
            shape,
            6,
            kernel,
            groups,
            strides=[stride] * spatial,
            pads=[pad] * 2 * spatial,
            output_padding=[more] * spatial,
            dilations=[dilation] * spatial,
        ),
        way,
    )
    assert way is _together or after <= before


@settings(max_examples=30, deadline=None)
@given(
    spatial=st.integers(1, 3), size=st.integers(3, 6), kernel=st.sampled_from([1, 3, 5]), scale=st.integers(1, 4),
    stride=st.integers(1, 3), way=st.sampled_from([_any, _together]),
)  # fmt: skip
@example(spatial=2, size=4, kernel=3, scale=2, stride=1, way=_any)
@example(spatial=1, size=6, kernel=5, scale=4, stride=3, way=_together)
def test_convolutions_of_enlarged_images_keep_their_meaning(
    spatial: int, size: int, kernel: int, scale: int, stride: int, way: Better
) -> None:
    before, after = _check(enlarged([1, 3, size, *[3] * (spatial - 1)], 4, kernel, [scale] * spatial, stride), way)
    assert way is _together or after <= before


@pytest.mark.parametrize(
    ("model", "share"),
    [
        (transposed([1, 8, 16, 16], 4, 4, strides=[2, 2], pads=[1] * 4), 1 / 4),
        (transposed([1, 8, 16, 16], 4, 2, strides=[2, 2]), 1 / 4),
        (transposed([1, 8, 64], 4, 16, strides=[8], pads=[4, 4]), 1 / 8),
        (transposed([1, 8, 16, 16], 8, 4, 8, strides=[2, 2], pads=[1] * 4), 1 / 4),
        (enlarged([1, 8, 16, 16], 4, 3, [2, 2]), 4 / 9),
        (enlarged([1, 8, 16, 16], 4, 3, [4, 4]), 1 / 4),
        (enlarged([1, 8, 16, 16], 4, 5, [2, 2]), 9 / 25),
        (enlarged([1, 8, 4, 8, 8], 4, 3, [1, 2, 2]), 4 / 9),
        (enlarged([1, 8, 16, 16], 4, 1, [2, 2]), 1),
        (transposed([1, 8, 16, 16], 4, 3, strides=[1, 1], pads=[1] * 4), 1),
    ],
)
def test_what_meets_the_same_is_multiplied_once(model: onnx.ModelProto, share: float) -> None:
    before, after = _check(model)
    assert after == pytest.approx(share * before)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    "nodes",
    [
        [NODE("ConvTranspose", ["r", "w"], ["c"], strides=[2, 2], pads=[1] * 4)],
        [NODE("ConvTranspose", ["r", "w3"], ["c"], strides=[2, 2], pads=[1] * 4, output_padding=[1, 1])],
        [NODE("ConvTranspose", ["r", "w1"], ["c"], group=64, strides=[2, 2], pads=[1] * 4)],
        [NODE("Resize", ["r", "", "twice"], ["u"], **NEAREST), NODE("Conv", ["u", "w3"], ["c"], pads=[1] * 4)],
    ],
)
def test_the_core_computes_them_sooner(nodes: list[NodeProto], chip: str) -> None:
    """Between a convolution and the mean of what comes out, so that little is moved."""
    weights = {
        "w0": _drawn(64, 3, 3, 3), "w": _drawn(64, 64, 4, 4) / 24, "w3": _drawn(64, 64, 3, 3) / 24,
        "w1": _drawn(64, 1, 4, 4) / 4, "twice": np.array([1, 1, 2, 2], np.float32),
    }  # fmt: skip
    used = {name for node in nodes for name in node.input}
    ends = [NODE("Conv", ["x", "w0"], ["a"], pads=[1] * 4), NODE("Relu", ["a"], ["r"])]
    rest = [NODE("Relu", ["c"], ["d"]), NODE("GlobalAveragePool", ["d"], ["y"])]
    kept = {name: value for name, value in weights.items() if name in used | {"w0"}}
    model = make_model([*ends, *nodes, *rest], {"x": (1, 3, 32, 32)}, ["y"], kept)

    def latency_us() -> float:
        return tvm_neuron.report(tvm_neuron.compile(model, target=f"neuron/{chip}")).latency_us

    found = latency_us()
    with without("polyphase"):
        assert found < latency_us()
    x = {"x": np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)}
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, x)
    # Operands are rounded to 2^-8 of their size, and errors of what is averaged add up to less.
    size = np.abs(wanted).max()
    np.testing.assert_allclose(run(compile_model(model, f"neuron/{chip}"), x, "strict")["y"], wanted, atol=0.01 * size)


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize(
    ("shape", "kernel", "stride"), [((1, 66, 40), 64, 16), ((1, 96, 33), 200, 100), ((2, 40, 4, 4), 16, 16)]
)
def test_frames_are_put_behind_each_other(shape: tuple[int, ...], kernel: int, stride: int, chip: str) -> None:
    """An inverse Fourier transform of frames that overlap, and patches that become an image: one product."""
    spatial = len(shape) - 2
    weights = {"w": _drawn(shape[1], 2, *[kernel] * spatial) / np.float32(shape[1] ** 0.5)}
    nodes = [NODE("Tanh", ["x"], ["t"]), NODE("ConvTranspose", ["t", "w"], ["y"], strides=[stride] * spatial)]
    model = make_model(nodes, {"x": shape}, ["y"], weights)
    made = compile_model(model, f"neuron/{chip}")
    x = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, x)
    np.testing.assert_allclose(run(made, x, "strict")["y"], wanted, atol=0.02 * np.abs(wanted).max())
    report = tvm_neuron.report(tvm_neuron.compile(model, target=f"neuron/{chip}"))
    with without("polyphase"):
        assert report.latency_us < tvm_neuron.report(tvm_neuron.compile(model, target=f"neuron/{chip}")).latency_us / 2
