"""Convolutions of one tensor whose results are added are one, as of networks that come as they were trained."""

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from tvm import relax

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.frontend.convolution import Convolution

Arrays = dict[str, np.ndarray]


def branch(name: str, shape: tuple[int, ...], seed: int, **attributes: object) -> tuple[list[onnx.NodeProto], Arrays]:
    """A convolution of x with a bias, named `name`."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal(shape).astype(np.float32) / np.float32(np.prod(shape[1:]) ** 0.5)
    node = helper.make_node("Conv", ["x", f"{name}w", f"{name}b"], [name], name=f"conv_{name}", **attributes)
    return [node], {f"{name}w": weights, f"{name}b": rng.standard_normal(shape[:1]).astype(np.float32)}


def norm(name: str, channels: int) -> tuple[list[onnx.NodeProto], Arrays]:
    """A batch norm of x, named `name`."""
    rng = np.random.default_rng(channels)
    parts = {f"{name}{part}": rng.uniform(0.5, 1.5, channels).astype(np.float32) for part in ("g", "b", "m", "v")}
    return [helper.make_node("BatchNormalization", ["x", *parts], [name], name=f"norm_{name}")], parts


def added(names: list[str], result: str = "y") -> list[onnx.NodeProto]:
    """Their sum."""
    sums = [f"s{at}" for at in range(len(names) - 2)] + [result]
    lefts = [names[0], *sums]
    return [helper.make_node("Add", [lefts[at], names[at + 1]], [sums[at]]) for at in range(len(sums))]


def block(parts: dict[str, tuple[list[onnx.NodeProto], Arrays]], shape: tuple[int, ...]) -> onnx.ModelProto:
    """The sum of branches of x, and x itself where one is called that."""
    nodes = [node for made, _ in parts.values() for node in made]
    weights = {name: array for _, arrays in parts.values() for name, array in arrays.items()}
    return make_model([*nodes, *added(list(parts))], {"x": shape}, ["y"], weights)


def check(model: onnx.ModelProto, seed: int = 0) -> tuple[int, list[str]]:
    """Compares with onnxruntime; the multiplications, and the convolutions of which something is left."""
    shape = tuple(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim)
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    mod, params = relay.frontend.from_onnx(model)
    options = tvm_neuron.BuildOptions(fp32_cast="none")
    library = relay.build(mod, "neuron/inf2", params=params, options=options)
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=x)
    for at, array in enumerate(expected):  # sums of up to 300 products in float32, in another order
        np.testing.assert_allclose(executor.get_output(at).numpy(), array, rtol=0, atol=2e-5 * np.abs(array).max())
    report = tvm_neuron.report(library)
    return report.macs, [row.name for row in report.placed("neuroncore") if row.op == "Conv"]


@pytest.mark.parametrize(
    ("groups", "stride", "side"), [(1, 1, 9), (1, 2, 9), (1, 2, 10), (8, 1, 9), (2, 1, 8), (8, 2, 10)]
)
def test_branches_of_two_kernels_are_one_convolution(groups: int, stride: int, side: int) -> None:
    common = {"group": groups, "strides": [stride, stride]}
    parts = {
        "a": branch("a", (8, 8 // groups, 3, 3), 1, pads=[1, 1, 1, 1], **common),
        "b": branch("b", (8, 8 // groups, 1, 1), 2, **common),
        "c": branch("c", (8, 8 // groups, 3, 3), 3, pads=[1, 1, 1, 1], **common),
    } | ({"n": norm("n", 8), "x": ([], {})} if stride == 1 else {})
    macs, _ = check(block(parts, (1, 8, side, side)))
    assert macs == 8 * (8 // groups) * 9 * (-(-side // stride)) ** 2


def test_dilated_and_flat_kernels() -> None:
    common = {"group": 6}
    wide = branch("a", (6, 1, 3, 3), 1, pads=[2, 2, 2, 2], dilations=[2, 2], **common)
    flat = {
        "f": branch("f", (6, 1, 1, 3), 2, pads=[0, 2, 0, 2], dilations=[1, 2], **common),
        "p": branch("p", (6, 1, 1, 1), 3, **common),
    }
    macs, _ = check(block({"a": wide, **flat}, (1, 6, 12, 11)))
    assert macs == 6 * 9 * 12 * 11


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"shape": (6, 1, 1, 7), "pads": [0, 3, 0, 3]}, {"shape": (6, 1, 7, 1), "pads": [3, 0, 3, 0]}),  # 49 for 14
        ({"shape": (6, 1, 3, 3), "pads": [1] * 4}, {"shape": (6, 1, 3, 3), "pads": [2] * 4, "dilations": [2, 2]}),
    ],
)  # fmt: skip
def test_what_is_more_work_together_stays_apart(one: dict[str, object], two: dict[str, object]) -> None:
    parts = {name: branch(name, each.pop("shape"), 4, group=6, **each) for name, each in (("a", one), ("b", two))}  # type: ignore[arg-type]
    _, left = check(block(parts, (1, 6, 10, 10)))
    assert left == ["conv_a", "conv_b"]


def test_differences_and_scales_of_channels() -> None:
    """As FastViT mixes tokens: x + scale * (mixed(x) - norm(x))."""
    nodes, weights = branch("a", (6, 1, 7, 7), 5, pads=[3, 3, 3, 3], group=6)
    more, others = norm("n", 6)
    weights |= others | {"s": np.random.default_rng(6).standard_normal((6, 1, 1)).astype(np.float32)}
    nodes += [
        *more, helper.make_node("Sub", ["a", "n"], ["d"]), helper.make_node("Mul", ["s", "d"], ["m"]),
        helper.make_node("Add", ["x", "m"], ["y"]),
    ]  # fmt: skip
    model = make_model(nodes, {"x": (1, 6, 12, 12)}, ["y"], weights)
    assert check(model)[0] == 6 * 49 * 144


def test_what_is_added_beside_them_stays() -> None:
    """A constant of all places, another tensor, and a difference that turns signs."""
    parts = {
        "a": branch("a", (4, 4, 3, 3), 7, pads=[1, 1, 1, 1]), "b": branch("b", (4, 4, 1, 1), 8),
        "k": ([], {"k": np.random.default_rng(9).standard_normal((4, 6, 5)).astype(np.float32)}),
    }  # fmt: skip
    nodes = [node for made, _ in parts.values() for node in made]
    weights = {name: array for _, arrays in parts.values() for name, array in arrays.items()}
    nodes += [
        helper.make_node("Relu", ["x"], ["r"]), *added(["a", "k"], "ak"), helper.make_node("Sub", ["r", "ak"], ["d"]),
        helper.make_node("Sub", ["d", "b"], ["y"]),
    ]  # fmt: skip
    assert check(make_model(nodes, {"x": (1, 4, 6, 5)}, ["y"], weights))[0] == 4 * 4 * 9 * 30


@pytest.mark.parametrize("rank", [1, 3])
def test_of_sequences_and_volumes(rank: int) -> None:
    wide, point = (3,) * rank, (1,) * rank
    parts = {
        "a": branch("a", (4, 4, *wide), 1, pads=[1] * 2 * rank), "b": branch("b", (4, 4, *point), 2),
    }  # fmt: skip
    assert check(block(parts, (1, 4, *(6,) * rank)))[0] == 4 * 4 * 3**rank * 6**rank


def test_a_branch_that_is_read_elsewhere_stays() -> None:
    nodes, weights = branch("a", (4, 4, 3, 3), 1, pads=[1, 1, 1, 1])
    more, others = branch("b", (4, 4, 1, 1), 2)
    model = make_model(
        [*nodes, *more, *added(["a", "b"]), helper.make_node("Relu", ["b"], ["z"])],
        {"x": (1, 4, 6, 6)}, ["y", "z"], weights | others,
    )  # fmt: skip
    assert check(model)[1] == ["conv_a", "conv_b"]


def convolved(x: np.ndarray, by: Convolution) -> np.ndarray:
    """Of [C, *dims], channel by channel, in float64."""
    padded = np.pad(x, [(0, 0), *zip(by.before, by.after, strict=True)])
    weights, kernel, strides = by.weights[:, 0], by.weights.shape[2:], [int(step) for step in by.call.attrs.strides]
    counts = [
        (extent - step * (size - 1) - 1) // stride + 1
        for extent, step, size, stride in zip(padded.shape[1:], by.dilation, kernel, strides, strict=True)
    ]
    total = np.zeros((len(x), *counts))
    for place in itertools.product(*map(range, kernel)):
        cut = [
            slice(at * step, at * step + (count - 1) * stride + 1, stride)
            for at, step, count, stride in zip(place, by.dilation, counts, strides, strict=True)
        ]
        total += weights[(slice(None), *place)].reshape(-1, *[1] * len(kernel)) * padded[(slice(None), *cut)]
    return total


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_sum_makes_what_both_make(data: st.DataObject) -> None:
    """Of two kernels with as many results, whose last element may be read by neither."""
    rank = data.draw(st.integers(1, 2))
    results, strides = ([data.draw(st.integers(1, most)) for _ in range(rank)] for most in (5, 3))
    least = [(n - 1) * stride + 1 for n, stride in zip(results, strides, strict=True)]  # that a kernel of 1 reads
    sides = [data.draw(st.integers(1, most)) for most in least]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = relax.Var("x", relax.TensorType((1, 3, *sides), "float32"))
    make = relax.op.nn.conv1d if rank == 1 else relax.op.nn.conv2d
    found = []
    for _ in range(2):
        kernel, dilation = ([data.draw(st.integers(1, most)) for _ in range(rank)] for most in (3, 2))
        pads = [
            one + step * (size - 1) - side + data.draw(st.integers(0, stride - 1))
            for one, step, size, side, stride in zip(least, dilation, kernel, sides, strides, strict=True)
        ]
        before = [data.draw(st.integers(0, pad)) for pad in pads]
        after = [pad - first for pad, first in zip(pads, before, strict=True)]
        weights = relax.const(rng.standard_normal((3, 1, *kernel)).astype(np.float32))
        call = make(x, weights, strides, [*before, *after], dilation, 3)
        found.append(Convolution.of(relax.BlockBuilder().normalize(call)))
    one, two = found
    assert one is not None
    assert two is not None
    both = one.plus(two)
    if one.dilation == two.dilation and one.weights.shape == two.weights.shape and one.before == two.before:
        assert both is not None
    if both is not None:
        values = rng.standard_normal((3, *sides))
        made = [convolved(values, each) for each in (one, two, both)]
        np.testing.assert_allclose(made[2], made[0] + made[1], rtol=0, atol=1e-12)
