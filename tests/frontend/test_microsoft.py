"""Operators of com.microsoft, against onnxruntime."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import helper

from tvm_neuron import BuildOptions
from tvm_neuron.errors import ModelError
from tvm_neuron.relay import build, frontend
from tvm_neuron.relay.graph_executor import GraphModule

RNG = np.random.default_rng(11)
BATCH, STEPS, EARLIER, HEADS, WIDTH = 2, 3, 4, 2, 8
MASKS = {
    "none": lambda _: None,
    "rows": lambda total: np.float32(RNG.random((BATCH, total))) > 0.4,
    "all": lambda total: np.float32(RNG.random((BATCH, STEPS, total))) > 0.4,
    "lengths": lambda _: np.array([2, 1]),
}


def _model(op: str, inputs: dict[str, Any], outputs: list[str], **attributes: Any) -> onnx.ModelProto:
    given = {name: value for name, value in inputs.items() if value is not None}
    node = helper.make_node(
        op, [n if v is not None else "" for n, v in inputs.items()], outputs, domain="com.microsoft", **attributes
    )
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "g", values, results), opset_imports=opsets, ir_version=8)


def _agrees(op: str, inputs: dict[str, Any], outputs: list[str], tolerance: float, **attributes: Any) -> None:
    model = _model(op, inputs, outputs, **attributes)
    given = {name: np.asarray(value) for name, value in inputs.items() if value is not None}
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
    mod, params = frontend.from_onnx(model)
    lib = build(mod, "neuron/inf2", params=params, options=BuildOptions(fp32_cast="none"))
    runner = GraphModule(lib["default"](tvm.cpu()))
    runner.run(**given)
    for number, wanted in enumerate(expected):
        found = runner.get_output(number).numpy()
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def _of_attention(mask: str, has_past: bool) -> tuple[dict[str, Any], Any]:
    inputs = {
        "x": RNG.standard_normal((BATCH, STEPS, WIDTH), dtype="float32"),
        "w": RNG.standard_normal((WIDTH, 3 * WIDTH), dtype="float32"),
        "b": RNG.standard_normal(3 * WIDTH, dtype="float32"),
    }
    made = MASKS[mask](STEPS + EARLIER * has_past)
    if made is not None:
        made = made.astype("int32")
        if made.ndim > 1:
            made[..., 0] = 1  # where all is masked, float32 keeps no digits beside the -10000
    past = RNG.standard_normal((2, BATCH, HEADS, EARLIER, WIDTH // HEADS), dtype="float32") if has_past else None
    return inputs | {"m": made}, past


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("has_past", "unidirectional"), [(False, 1), (True, 0)])
def test_attention(mask: str, has_past: bool, unidirectional: int) -> None:
    inputs, past = _of_attention(mask, has_past)
    # the exponential of the core's tables is right to 2^-17 or so; scores here are up to 20
    options = {"num_heads": HEADS, "unidirectional": unidirectional}
    _agrees("Attention", inputs | {"p": past}, ["y", "present"], 2e-4, **options)


@pytest.mark.slow
def test_attention_with_its_own_scale_filter_and_sizes() -> None:
    inputs, past = _of_attention("rows", True)
    options = {"num_heads": HEADS, "scale": 0.3, "mask_filter_value": -5.0, "unidirectional": 1}
    _agrees("Attention", inputs | {"p": past}, ["y", "present"], 2e-4, **options)
    inputs, _ = _of_attention("rows", False)
    inputs["w"], inputs["b"] = inputs["w"][:, :20], inputs["b"][:20]
    _agrees("Attention", inputs, ["y"], 2e-4, num_heads=HEADS, qkv_hidden_sizes=[8, 8, 4])


@pytest.mark.parametrize("has_past", [False, True])
def test_quantized_attention(has_past: bool) -> None:
    inputs, past = _of_attention("rows", has_past)
    quantized = {
        "x": RNG.integers(0, 255, inputs["x"].shape).astype("uint8"),
        "w": RNG.integers(0, 255, inputs["w"].shape).astype("uint8"), "b": inputs["b"],
        "xs": np.float32([0.01]), "ws": np.float32([0.02]), "m": inputs["m"],
        "xz": np.uint8([120]), "wz": np.uint8([131]), "p": past,
    }  # fmt: skip
    _agrees("QAttention", quantized, ["y", "present"], 2e-4, num_heads=HEADS, unidirectional=1)


@pytest.mark.parametrize("transposed", ["", "A", "B", "AB"])
@pytest.mark.parametrize(("by_column", "is_float"), [(False, False), (True, True), (True, False)])
def test_qgemm(transposed: str, by_column: bool, is_float: bool) -> None:
    a, b = RNG.integers(0, 255, (5, 12)).astype("uint8"), RNG.integers(0, 255, (12, 7)).astype("uint8")
    columns = (7,) if by_column else ()
    inputs = {
        "a": np.ascontiguousarray(a.T) if "A" in transposed else a, "as": np.float32(0.2), "az": np.uint8(118),
        "b": np.ascontiguousarray(b.T) if "B" in transposed else b,
        "bs": RNG.random(columns).astype("float32") + np.float32(0.1), "bz": np.full(columns, 125, np.uint8),
        "c": RNG.integers(-9000, 9000, (7,)).astype("int32"),
    } | ({} if is_float else {"ys": np.float32(40.7), "yz": np.uint8(100)})  # fmt: skip
    options = {f"trans{side}": 1 for side in transposed}
    # a float has float32's digits; a byte may be the next one where the quotient lies between two
    _agrees("QGemm", inputs, ["y"], 1e-5 if is_float else 1.01, alpha=0.5, **options)


def test_forms_that_are_refused() -> None:
    inputs, _ = _of_attention("none", False)
    with pytest.raises(ModelError, match="its attribute do_rotary is set, which is not supported"):
        frontend.from_onnx(_model("Attention", inputs, ["y"], num_heads=HEADS, do_rotary=1))
    inputs["m"] = np.ones((2 * BATCH,), "int32")
    with pytest.raises(ModelError, match=r"its mask has the shape \(4,\); masks have \[2\], \[2, 3\] or \[2, 3, 3\]"):
        frontend.from_onnx(_model("Attention", inputs, ["y"], num_heads=HEADS))
    inputs |= {"m": None, "p": None, "r": None, "n": np.array([1], "int32")}
    with pytest.raises(ModelError, match="its past_sequence_length is given; give a past of the length that it has"):
        frontend.from_onnx(_model("Attention", inputs, ["y"], num_heads=HEADS))
