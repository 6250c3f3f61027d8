"""The blocks of the attention grid are attention, and what is found of one is a record."""

import numpy as np
import pytest

from benchmarks.attention_grid import HEADS, MOST_CHANNELS, TOKENS, WINDOWS, Block, draw, find
from benchmarks.catalogue.apart import preload
from tests.models.agreement import run_exactly


def test_draws_depend_on_the_seed_and_keep_to_the_sizes() -> None:
    found = list(draw(50, 3))
    assert found == list(draw(50, 3))
    assert found != list(draw(50, 4))
    assert {block.is_fused for block in found} == {False, True}
    for block in found:
        assert WINDOWS[0] <= block.windows <= WINDOWS[1]
        assert TOKENS[0] <= block.tokens <= TOKENS[1]
        assert HEADS[0] <= block.heads <= HEADS[1]
        assert block.channels <= MOST_CHANNELS


@pytest.mark.parametrize("is_fused", [False, True])
def test_a_block_is_attention(is_fused: bool) -> None:
    block = Block(2, 5, 3, 16, is_fused)
    model = block.model()
    w = {proto.name: np.float64(np.frombuffer(proto.raw_data, "f4")) for proto in model.graph.initializer if proto.dims}
    x = np.random.default_rng(1).standard_normal((2, 5, 48))
    if is_fused:
        parts = np.split(x @ w["qkv.w"].reshape(48, 144) + w["qkv.b"], 3, axis=-1)
    else:
        parts = [x @ w[f"{part}.w"].reshape(48, 48) + w[f"{part}.b"] for part in "qkv"]
    q, k, v = (part.reshape(2, 5, 3, 16).transpose(0, 2, 1, 3) for part in parts)
    shares = np.exp(q @ k.transpose(0, 1, 3, 2) / 4)
    mixed = (shares / shares.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(2, 5, 48)
    found = run_exactly(model, {"x": x.astype(np.float32)})["y"]
    np.testing.assert_allclose(found, mixed @ w["y.w"].reshape(48, 48) + w["y.b"], rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_what_is_found_of_a_block() -> None:
    preload([])
    record = find(Block(2, 5, 3, 16, True), "inf2", only_time=False)
    assert record["name"] == "2x5 tokens, 3 heads of 16, fused, inf2"
    assert record["outcome"] == "built"
    assert record["error"] <= record["bound"]
    assert record["error_fp32"] <= record["bound_fp32"]
    assert record["latency_us"] > record["bound_us"] > record["roofline_us"] > 0
