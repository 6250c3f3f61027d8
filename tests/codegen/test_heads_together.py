"""Heads of 32 and 64 channels lie side by side in PSUM and leave it by one instruction."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.codegen.emit import product
from tvm_neuron.codegen.emit.heads import heads_together
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.kernel import ROOT, Kernel, Operand, Product
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


def attention(windows: int, tokens: int, heads: int, size: int) -> onnx.ModelProto:
    """Attention inside of windows, as a model writes it: one projection for queries, keys and values."""
    rng, channels = np.random.default_rng(heads), heads * size
    weights = {
        "w": rng.standard_normal((channels, 3 * channels)).astype(np.float32) / np.float32(channels**0.5),
        "v": rng.standard_normal((channels, channels)).astype(np.float32) / np.float32(channels**0.5),
        "parts": np.int64([windows, tokens, 3, heads, size]), "flat": np.int64([windows, tokens, channels]),
        "scale": np.float32(size**-0.5), **{f"at{part}": np.int64(part) for part in range(3)},
    }  # fmt: skip
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["qkv"]),
        helper.make_node("Reshape", ["qkv", "parts"], ["five"]),
        *(helper.make_node("Gather", ["five", f"at{part}"], [f"p{part}"], axis=2) for part in range(3)),
        helper.make_node("Transpose", ["p0"], ["q"], perm=[0, 2, 1, 3]),
        helper.make_node("Transpose", ["p1"], ["k"], perm=[0, 2, 3, 1]),
        helper.make_node("Transpose", ["p2"], ["u"], perm=[0, 2, 1, 3]),
        helper.make_node("Mul", ["q", "scale"], ["scaled"]),
        helper.make_node("MatMul", ["scaled", "k"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "u"], ["found"]),
        helper.make_node("Transpose", ["found"], ["back"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["back", "flat"], ["together"]),
        helper.make_node("MatMul", ["together", "v"], ["y"]),
    ]
    return make_model(nodes, {"x": (windows, tokens, channels)}, ["y"], weights)


def run(model: onnx.ModelProto, x: np.ndarray, chip: str, cast: str) -> tuple[np.ndarray, int]:
    """The result, and the number of instructions; all of it on the core."""
    mod, params = relay.frontend.from_onnx(model)
    options = tvm_neuron.BuildOptions(fp32_cast=cast, must_compile=True)
    library = relay.build(mod, f"neuron/{chip}", params=params, options=options)
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(x=x)
    return executor.get_output(0).numpy(), tvm_neuron.report(library).instructions


@pytest.mark.parametrize(
    ("chip", "cast", "share"),
    [("inf1", "all", 2e-2), ("inf2", "none", 2e-5)],  # roundings to bfloat16; sums of up to 384 products in two orders
)
@pytest.mark.parametrize(
    ("windows", "tokens", "heads", "size"),
    [(9, 49, 3, 32), (4, 36, 6, 32), (1, 49, 12, 32), (5, 64, 4, 32), (3, 49, 3, 64), (1, 100, 5, 64), (2, 25, 7, 32)],
)
def test_attention_agrees_with_onnxruntime(
    windows: int, tokens: int, heads: int, size: int, chip: str, cast: str, share: float
) -> None:
    model = attention(windows, tokens, heads, size)
    x = np.random.default_rng(tokens).standard_normal((windows, tokens, heads * size)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    found, _ = run(model, x, chip, cast)
    np.testing.assert_allclose(found, expected, rtol=0, atol=share * np.abs(expected).max())


def test_heads_of_a_chunk_leave_a_bank_together(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = attention(1, 49, 12, 32), np.random.default_rng(1).standard_normal((1, 49, 384)).astype(np.float32)
    together = run(model, x, "inf2", "none")[1]
    monkeypatch.setattr(product, "heads_together", lambda *_: None)
    assert run(model, x, "inf2", "none")[1] - together >= 8  # 12 heads in 3 chunks: 3 instructions, not 12


def of_heads(size: int, moved: int, read_size: int) -> tuple[Kernel, dict[Tensor, int]]:
    """A product of 4 heads, from partition `moved` on; its moving operand has heads on partitions, too."""
    head, channel, depth, token = Axis("h", 4), Axis("c", size), Axis("k", 32), Axis("t", 49)
    out, values = Tensor("o", (49, 4 * size + moved), "float32"), Tensor("v", (32, 4, size), "float32")
    shares = Tensor("s", (4 * read_size, 49), "float32")
    by_head = Linear(0, {head: read_size, depth: 1})
    stationary = Operand(values, (Linear(0, {depth: 1}), Linear(0, {head: 1}), Linear(0, {channel: 1})))
    root = Product(stationary, Operand(shares, (by_head, Linear(0, {token: 1}))), depth, ())
    maps = Linear(0, {token: 1}), Linear(moved, {head: size, channel: 1})
    return Kernel((), out, maps, channel, (head, token), ROOT, root), {out: 1, values: 0, shares: 0}


@pytest.mark.parametrize(
    ("size", "moved", "read_size", "are_together"),
    [
        (32, 0, 32, True), (32, 128, 64, True), (32, 32, 32, False),
        (64, 0, 64, True), (64, 0, 32, False), (128, 0, 32, False),
    ],
)  # fmt: skip
def test_which_heads_share_a_bank(size: int, moved: int, read_size: int, are_together: bool) -> None:
    """Those of whole chunks, whose operands are back on the same partitions with the next chunk."""
    kernel, partition_of = of_heads(size, moved, read_size)
    found = heads_together(kernel, partition_of)
    assert (found is not None) == are_together
    if found is not None:
        assert found.together.channel.extent == 4 * size
        assert [axis.name for axis in found.together.free] == ["t"]
