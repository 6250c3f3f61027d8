"""Chains of convolutions of few channels work on several rows, or moments, at once to their very end."""

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

import tvm_neuron
from tests.codegen.on_core import PRECISIONS, check
from tests.models.agreement import random_inputs
from tests.onnx_models import make_model
from tvm_neuron.codegen.kernels import fold_rows


def chain(
    channels: int, length: int, columns: int, kernel: int, dilation: int, last: int, batch: int
) -> onnx.ModelProto:
    """Three convolutions along rows, with a sum around the second one; along time where there are no columns."""
    rng, pads = np.random.default_rng([channels, length, kernel]), dilation * (kernel - 1) // 2
    is_image = columns > 0
    window = (kernel, 3) if is_image else (kernel,)
    attributes = {
        "pads": [pads, 1, pads, 1] if is_image else [pads] * 2,
        "dilations": [dilation, 1] if is_image else [dilation],
    }
    weights, nodes, source = {}, [], "x"
    for n, outputs in enumerate((channels, channels, last)):
        scale = (channels * np.prod(window)) ** 0.5
        weights[f"w{n}"] = (rng.standard_normal((outputs, channels, *window)) / scale).astype(np.float32)
        nodes.append(helper.make_node("Conv", [source, f"w{n}"], [f"c{n}"], **attributes))
        nodes.append(helper.make_node("LeakyRelu", [f"c{n}"], [f"r{n}"]))
        source = f"r{n}"
        if n == 1:
            nodes.append(helper.make_node("Add", ["r0", "r1"], ["s"]))
            source = "s"
    shape = (batch, channels, length, *([columns] if is_image else []))
    return make_model(nodes, {"x": shape}, [source], weights)


@settings(max_examples=15, deadline=None)
@given(
    channels=st.sampled_from([8, 16, 24, 32, 60]), length=st.sampled_from([16, 24, 30, 64]),
    columns=st.sampled_from([0, 0, 1, 7, 20]), kernel=st.sampled_from([1, 3, 7]), dilation=st.sampled_from([1, 2, 3]),
    last=st.sampled_from([1, 3, 16, 40]), batch=st.integers(1, 2), precision=st.sampled_from(PRECISIONS),
)  # fmt: skip
@example(channels=32, length=64, columns=0, kernel=7, dilation=1, last=16, batch=1, precision=("inf2", "all"))
@example(channels=32, length=64, columns=20, kernel=3, dilation=1, last=3, batch=2, precision=("inf1", "all"))
def test_as_onnxruntime(
    channels: int, length: int, columns: int, kernel: int, dilation: int, last: int, batch: int,
    precision: tuple[str, str],
) -> None:  # fmt: skip
    model = chain(channels, length, columns, kernel, dilation, last, batch)
    # float32 adds up 420 products in each of three layers, in another order; bfloat16 rounds what it adds up but once
    check(model, random_inputs(model), *precision, roundings=24 if precision[1] == "none" else 8)


@pytest.mark.parametrize("columns", [0, 1])
def test_it_is_quicker_than_row_by_row(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def latency_us() -> float:
        model = chain(32, 2048, columns, 7, 1, 32, 1)
        return tvm_neuron.report(tvm_neuron.compile(model, target="neuron/inf2")).latency_us

    found = latency_us()
    monkeypatch.setattr(fold_rows, "by_phases", lambda kernels, *_: (kernels, {}))
    assert found < latency_us()
