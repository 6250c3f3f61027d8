"""Forms of ONNX operators that TVM's importer gets wrong or refuses, against the onnx package's reference operators."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tvm_neuron
from tests.onnx_models import reference
from tvm_neuron import relay
from tvm_neuron.errors import ModelError
from tvm_neuron.relay import graph_executor

Arrays = dict[str, np.ndarray]


def made(node: onnx.NodeProto, inputs: Arrays, constants: Arrays, results: int = 1, opset: int = 25) -> onnx.ModelProto:
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output[:results]]
    graph = helper.make_graph([node], "g", values, outputs, weights)
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.preview.training", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=9)


def compiled(model: onnx.ModelProto, inputs: Arrays, count: int = 1) -> list[np.ndarray]:
    mod, params = relay.frontend.from_onnx(model)
    executor = graph_executor.GraphModule(relay.build(mod, target="neuron", params=params)["default"]())
    executor.run(**inputs)
    return [executor.get_output(index).numpy() for index in range(count)]


def check(node: onnx.NodeProto, inputs: Arrays, constants: Arrays | None = None, rtol: float = 0.0) -> None:
    model = made(node, inputs, constants or {}, len(node.output))
    with np.errstate(all="ignore"):
        expected = ReferenceEvaluator(model).run(None, inputs)
    for actual, wanted in zip(compiled(model, inputs, len(expected)), expected, strict=True):
        assert actual.dtype == wanted.dtype
        np.testing.assert_allclose(actual, wanted, rtol=rtol, atol=rtol and rtol * np.abs(wanted).max())


def test_a_part_without_elements() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 8), np.float32)
    check(helper.make_node("Split", ["x", "sizes"], ["y", "nothing"], axis=3), {"x": x}, {"sizes": np.array([8, 0])})


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("each_channel", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
def test_quantised_convolutions(rank: int, each_channel: bool, has_bias: bool) -> None:
    rng, channels = np.random.default_rng(rank), 5
    most = 64  # from which on onnxruntime saturates on AVX2
    scale = rng.uniform(0.01, 0.03, channels if each_channel else ()).astype(np.float32)
    constants = {
        "x_scale": np.float32(0.02), "x_zero": np.uint8(120),
        "w": rng.integers(-most, most, (channels, 3) + (3,) * rank, np.int8),
        "w_scale": scale, "w_zero": np.zeros(scale.shape, np.int8),
        "y_scale": np.float32(0.15), "y_zero": np.uint8(100),
    } | ({"b": rng.integers(-9000, 9000, channels, np.int32)} if has_bias else {})  # fmt: skip
    node = helper.make_node("QLinearConv", ["x", *constants], ["y"])
    inputs = {"x": rng.integers(0, 256, (2, 3) + (6,) * rank, np.uint8)}
    model = made(node, inputs, constants, opset=17)
    expected = reference(model, inputs)[0].astype(int)
    found = compiled(model, inputs)[0].astype(int)
    assert np.ptp(expected) > 50
    # whole numbers are exact; a product with the scales that falls between two may be rounded to either
    assert np.abs(found - expected).max() <= 1
    assert (found != expected).mean() < 0.02


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_shifts_of_any_amount(direction: str, dtype: str) -> None:
    rng, bits = np.random.default_rng(0), np.iinfo(dtype).bits
    a = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 40, dtype)
    b = rng.integers(0 if dtype.startswith("u") else -3, min(2 * bits, 127), 40).astype(dtype)
    check(helper.make_node("BitShift", ["a", "b"], ["y"], direction=direction), {"a": a, "b": b})


def test_floating_mod_of_everything() -> None:
    special = np.float32([0.0, -0.0, 1.5, -1.5, 7.25, -3.0, np.inf, -np.inf, np.nan])
    a, b = (np.ascontiguousarray(grid) for grid in np.meshgrid(special, special))
    check(helper.make_node("Mod", ["a", "b"], ["y"]), {"a": a, "b": b})


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_whole_powers_are_exact(dtype: str) -> None:
    a = np.array([0, 1, 2, 3, 5, 7, 1, 2, 0], dtype)
    b = np.array([3, 70, 7, 4, 3, 2, 0, 0, 0], dtype)
    check(helper.make_node("Pow", ["a", "b"], ["y"]), {"a": a, "b": b})


def test_negative_exponents_leave_the_whole_part() -> None:
    inputs = {"a": np.int32([1, -1, -1, 2, -3]), "b": np.int32([-3, -3, -2, -1, -2])}
    model = made(helper.make_node("Pow", ["a", "b"], ["y"]), inputs, {})
    np.testing.assert_array_equal(compiled(model, inputs)[0], [1, -1, 1, 0, 0])


@pytest.mark.parametrize(("positive", "negative"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_infinities_of_the_signs_asked_for(positive: int, negative: int) -> None:
    node = helper.make_node("IsInf", ["x"], ["y"], detect_positive=positive, detect_negative=negative)
    check(node, {"x": np.float32([1, np.inf, -np.inf, np.nan])})


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot_of_indices_in_and_out_of_range(axis: int) -> None:
    inputs = {"i": np.int64([[0, 2, 4], [-1, -5, 7]]), "v": np.float32([-1, 3])}
    check(helper.make_node("OneHot", ["i", "d", "v"], ["y"], axis=axis), inputs, {"d": np.int64(5)})


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("size", [[1, 2, 4, 3], [2, 1, 2, 5], [1, 1, 2, 3, 4]], ids=str)
def test_grids_of_a_single_matrix(size: list[int], align_corners: int) -> None:
    # the standard's body squeezes away a batch of one
    rank = len(size) - 2
    theta = np.random.default_rng(3).integers(-4, 5, (size[0], rank, rank + 1)).astype(np.float32)
    node = helper.make_node("AffineGrid", ["theta", "size"], ["y"], align_corners=align_corners)
    check(node, {"theta": theta}, {"size": np.int64(size)}, 2.0**-7)  # coordinates are rounded to bfloat16


@pytest.mark.parametrize(("reverse", "exclusive"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_products_so_far(reverse: int, exclusive: int) -> None:
    node = helper.make_node("CumProd", ["x", "a"], ["y"], reverse=reverse, exclusive=exclusive)
    check(node, {"x": np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)}, {"a": np.int64(1)}, 1e-6)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_of_space_become_channels(mode: str) -> None:
    x = np.arange(2 * 3 * 4 * 6, dtype=np.float32).reshape(2, 3, 4, 6)
    blocks = x.reshape(2, 3, 2, 2, 3, 2).transpose((0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    node = helper.make_node("SpaceToDepth", ["x"], ["y"], blocksize=2, mode=mode)
    np.testing.assert_array_equal(compiled(made(node, {"x": x}, {}), {"x": x})[0], blocks.reshape(2, 12, 2, 3))


def test_dropout_with_a_seed_draws_the_reference_mask() -> None:
    x = np.random.default_rng(2).normal(size=(4, 5)).astype(np.float32)
    node = helper.make_node("Dropout", ["x", "r", "t"], ["y", "m"], seed=3)
    check(node, {"x": x}, {"r": np.float32(0.25), "t": np.bool_(True)}, 1e-6)


def test_dropout_without_a_seed_is_refused() -> None:
    node = helper.make_node("Dropout", ["x", "", "t"], ["y"])
    with pytest.raises(ModelError, match="it trains without a seed, and the core draws no random numbers"):
        relay.frontend.from_onnx(made(node, {"x": np.zeros((2, 2), np.float32)}, {"t": np.bool_(True)}))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_resize_in_every_mode(data: st.DataObject) -> None:
    draw: Any = data.draw
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": draw(
            st.sampled_from(
                ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                 "tf_crop_and_resize"]
            )
        ),
    }  # fmt: skip
    if mode == "nearest":
        attributes["nearest_mode"] = draw(st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    else:
        attributes |= {"antialias": draw(st.sampled_from([0, 1])), "exclude_outside": draw(st.sampled_from([0, 1]))}
    x = np.random.default_rng(draw(st.integers(0, 99))).normal(size=(1, 2, 5, 7)).astype(np.float32)
    new = [1, 2, draw(st.integers(2, 11)), draw(st.integers(2, 11))]
    begin, end = [0.125, 0.1875], [0.8125, 1.125]  # exact in binary: halfway is halfway for everyone
    roi = np.float32([0, 0, *begin, 1, 1, *end])
    is_crop = attributes["coordinate_transformation_mode"] == "tf_crop_and_resize"
    if is_crop:
        attributes["axes"] = [2, 3]
        new, roi = new[2:], np.float32([*begin, *end])
    node = helper.make_node("Resize", ["x", "roi", "", "s"], ["y"], **attributes)
    # Products are of bf16 operands: 2 ** -9 each, a few terms of up to twice the largest element.
    check(node, {"x": x}, {"roi": roi, "s": np.int64(new)}, 0 if mode == "nearest" else 2e-2)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_resizes_of_float16_keep_its_digits(mode: str) -> None:
    x = np.random.default_rng(6).normal(size=(2, 3, 5, 6)).astype(np.float16)
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode=mode)
    # Weights, what is between the axes and results are rounded to 2 ** -12 each; the reference, too.
    check(node, {"x": x}, {"s": np.int64([2, 3, 9, 13])}, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 2, 1, 1), (1, 2, 1, 4)])
def test_samples_reflected_by_a_single_element(shape: tuple[int, ...]) -> None:
    """Of places inside there is nothing to reflect, which the reference divides by zero for."""
    rng = np.random.default_rng(7)
    inputs = {"x": rng.normal(size=shape), "g": rng.uniform(-0.9, 0.9, (1, 3, 2, 2))}
    inputs = {name: array.astype(np.float32) for name, array in inputs.items()}
    node = helper.make_node("GridSample", ["x", "g"], ["y"], align_corners=1, padding_mode="border")
    (wanted,) = ReferenceEvaluator(made(node, inputs, {})).run(None, inputs)
    node.attribute[1].s = b"reflection"
    np.testing.assert_allclose(compiled(made(node, inputs, {}), inputs)[0], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("inverse", "onesided", "parts"), [(0, 0, 1), (0, 0, 2), (0, 1, 1), (1, 0, 2), (1, 1, 2)])
@pytest.mark.parametrize("length", [None, 6, 11])
def test_fourier_transforms_along_an_axis(inverse: int, onesided: int, parts: int, length: int | None) -> None:
    x = np.random.default_rng(4).normal(size=(2, 9, 3, parts)).astype(np.float32)
    names = ["x", "n" if length else "", "a"]
    node = helper.make_node("DFT", names, ["y"], inverse=inverse, onesided=onesided)
    constants = {"a": np.int64(1)} | ({"n": np.int64(length)} if length else {})
    check(node, {"x": x}, constants, 1e-2)  # operands of products are rounded to bf16


@pytest.mark.parametrize("onesided", [0, 1])
def test_fourier_transforms_of_frames(onesided: int) -> None:
    x = np.random.default_rng(5).normal(size=(2, 30, 1)).astype(np.float32)
    constants = {"s": np.int64(4), "w": np.hanning(8).astype(np.float32), "n": np.int64(8)}
    check(helper.make_node("STFT", ["x", "s", "w", "n"], ["y"], onesided=onesided), {"x": x}, constants, 1e-2)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    kernel=st.tuples(st.integers(1, 3), st.integers(2, 3)), strides=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    dilations=st.tuples(st.integers(1, 3), st.integers(2, 3)), pads=st.tuples(*[st.integers(0, 1)] * 4),
    ceil_mode=st.integers(0, 1), count_include_pad=st.integers(0, 1),
)  # fmt: skip
def test_dilated_means(pads: tuple[int, ...], kernel: tuple[int, ...], **attributes: Any) -> None:
    pads = tuple(min(pad, size - 1) for pad, size in zip(pads, kernel * 2, strict=True))
    x = np.random.default_rng(6).normal(size=(1, 2, 9, 10)).astype(np.float32)
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=kernel, pads=pads, **attributes)
    session = onnxruntime.InferenceSession(made(node, {"x": x}, {}, opset=19).SerializeToString())
    (expected,) = session.run(None, {"x": x})
    np.testing.assert_allclose(compiled(made(node, {"x": x}, {}), {"x": x})[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_maxima_with_their_places(storage_order: int, ceil_mode: int) -> None:
    x = np.random.default_rng(7).normal(size=(2, 3, 7, 8)).astype(np.float32)
    node = helper.make_node(
        "MaxPool", ["x"], ["y", "i"], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1],
        storage_order=storage_order, ceil_mode=ceil_mode,
    )  # fmt: skip
    session = onnxruntime.InferenceSession(made(node, {"x": x}, {}, 2, opset=19).SerializeToString())
    for actual, expected in zip(
        compiled(made(node, {"x": x}, {}, 2), {"x": x}, 2), session.run(None, {"x": x}), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("attributes", [
    {}, {"strides": [2, 1], "pads": [1, 0, 1, 1]}, {"dilations": [2, 1]}, {"strides": [3, 2]},
    {"strides": [3, 2], "pads": [2, 1, 0, 3]}, {"strides": [4, 3], "pads": [0, 1, 1, 1]},
    {"strides": [2, 3], "dilations": [2, 3], "pads": [3, 0, 1, 2]},
])  # fmt: skip
def test_columns_become_an_image(attributes: dict[str, list[int]]) -> None:
    steps, pads = attributes.get("strides", [1, 1]), attributes.get("pads", [0] * 4)
    spread = attributes.get("dilations", [1, 1])
    counts = [(size + pads[i] + pads[i + 2] - spread[i] * (k - 1) - 1) // steps[i] + 1
              for i, (size, k) in enumerate([(7, 3), (6, 2)])]  # fmt: skip
    x = np.random.default_rng(8).normal(size=(2, 4 * 6, counts[0] * counts[1])).astype(np.float32)
    node = helper.make_node("Col2Im", ["x", "i", "b"], ["y"], **attributes)
    check(node, {"x": x}, {"i": np.int64([7, 6]), "b": np.int64([3, 2])}, 1e-6)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_a_cache_is_written_from_an_index_on(mode: str) -> None:
    rng = np.random.default_rng(9)
    inputs = {"c": rng.normal(size=(3, 2, 6, 4)), "u": rng.normal(size=(3, 2, 2, 4))}
    arrays = {name: array.astype(np.float32) for name, array in inputs.items()}
    arrays["w"] = np.int64([0, 4, 5 if mode == "circular" else 3])
    check(helper.make_node("TensorScatter", ["c", "u", "w"], ["y"], mode=mode), arrays)


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER"])
@pytest.mark.parametrize("output_shape", [[8, 9], [9, 10], [7, 12]])
def test_transposed_convolutions_to_a_shape(auto_pad: str, output_shape: list[int]) -> None:
    rng = np.random.default_rng(10)
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((1, 2, 4, 5), (2, 3, 3, 3)))
    node = helper.make_node(
        "ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], output_shape=output_shape, auto_pad=auto_pad
    )
    model = made(node, {"x": x}, {"w": w}, opset=19)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    actual = compiled(model, {"x": x})[0]
    np.testing.assert_allclose(actual, expected, atol=2e-2 * np.abs(expected).max())  # products of bf16


@pytest.mark.parametrize("opset", [7, 10, 11])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_the_largest_of_every_operator_set(opset: int, k: int) -> None:
    """Their number is an attribute before operator set 10."""
    x, given = np.random.default_rng(12).standard_normal((3, 5), np.float32), {} if opset < 10 else {"k": np.int64([k])}
    node = helper.make_node("TopK", ["x", *given], ["y", "i"], **({} if given else {"k": k}))
    values, places = compiled(made(node, {"x": x}, given, 2, opset), {"x": x}, 2)
    np.testing.assert_array_equal(places, np.argsort(-x, axis=1)[:, :k])
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :k])


def test_an_expansion_to_nothing() -> None:
    x = np.random.default_rng(1).standard_normal((1, 3), np.float32)
    check(helper.make_node("Expand", ["x", "s"], ["y"]), {"x": x}, {"s": np.array([2, 0, 3])})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [[0, 4], [1, 0, 0, 3, 0]])
def test_parts_without_elements(sizes: list[int], dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(dtype)
    node = helper.make_node("Split", ["x", "sizes"], [f"y{at}" for at in range(len(sizes))], axis=1)
    check(node, {"x": x}, {"sizes": np.array(sizes)})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_divided_by_a_single_zero(zero: float, dtype: str) -> None:
    x = np.array([-np.inf, -2, -0.0, 0, 3e38, np.inf, np.nan], dtype)
    check(helper.make_node("Div", ["x", "zero"], ["y"]), {"x": x}, {"zero": np.array(zero, dtype)})


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("axes", [None, [1], [-1, 0]])
def test_extremes_of_truth_values(op: str, axes: list[int] | None) -> None:
    x = np.random.default_rng(13).integers(0, 2, (2, 3, 4)).astype(bool)
    constants = {"a": np.int64(axes)} if axes else {}
    check(helper.make_node(op, ["x", "a"] if axes else ["x"], ["y"], keepdims=0), {"x": x}, constants)


def check_on_core(node: onnx.NodeProto, inputs: Arrays, constants: Arrays, rtol: float = 0.0) -> None:
    """As `check`, and all of it runs on the NeuronCore."""
    mod, params = relay.frontend.from_onnx(made(node, inputs, constants))
    assert not tvm_neuron.report(relay.build(mod, target="neuron", params=params)).placed("cpu")
    check(node, inputs, constants, rtol)


@pytest.mark.slow
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_the_last_of_equal_extremes(op: str, keepdims: int) -> None:
    x = np.random.default_rng(0).integers(0, 4, (3, 40, 5)).astype(np.float32)
    for axis in (0, 1, -1):
        node = helper.make_node(op, ["x"], ["y"], axis=axis, keepdims=keepdims, select_last_index=1)
        check_on_core(node, {"x": x}, {})


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32"])
def test_one_hot_of_indices_from_both_ends_and_outside(dtype: str) -> None:
    low = 0 if dtype == "uint8" else -9
    indices = np.random.default_rng(0).integers(low, 9, (4, 6)).astype(dtype)
    node = helper.make_node("OneHot", ["i", "depth", "values"], ["y"], axis=1)
    check_on_core(node, {"i": indices}, {"depth": np.int64(7), "values": np.float32([-1.5, 2.0])})


@pytest.mark.parametrize("kind", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_convolutions_that_keep_the_size(kind: str, dilation: int) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 10, 7), (4, 3, 3, 2)))
    options = {"strides": [2, 3]} if dilation == 1 else {"dilations": [2, 2]}
    node = helper.make_node("Conv", ["x", "w"], ["y"], auto_pad=kind, **options)
    # Products of bf16 (2^-9 each), of 18 terms in each sum.
    check_on_core(node, {"x": x}, {"w": w}, rtol=2e-2)


def test_an_axis_that_is_a_number() -> None:
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    check(helper.make_node("Unsqueeze", ["x", "axis"], ["y"]), {"x": x}, {"axis": np.int64(1)})


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("kind", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("size", "kernel", "stride"), [(1, 1, 3), (1, 2, 3), (4, 2, 3), (5, 3, 2)])
def test_pools_of_the_same_size_with_long_strides(op: str, kind: str, size: int, kernel: int, stride: int) -> None:
    """A stride beyond the operand's end is no negative padding."""
    attrs = {"kernel_shape": [kernel, 2], "strides": [stride, 2], "auto_pad": kind}
    node = helper.make_node(op, ["x"], ["y"], name="node", **attrs)
    x = np.random.default_rng(0).standard_normal((1, 2, size, 7)).astype(np.float32)
    model = made(node, {"x": x}, {}, opset=18)
    np.testing.assert_allclose(compiled(model, {"x": x})[0], reference(model, {"x": x})[0], rtol=1e-6)
