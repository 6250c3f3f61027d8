"""Every symbol that `record.py` wrote down gives what MXNet gave: as ONNX in onnxruntime, networks on the core."""

from collections.abc import Mapping

import numpy as np
import onnxruntime
import pytest
import tvm

import tvm_neuron
from tests.mxnet.recorded import NAMES, NETWORKS, OPERATORS, Written, given, outputs_of, symbol_of
from tvm_neuron import relay
from tvm_neuron.frontend import mxnet
from tvm_neuron.frontend.mxnet.control_flow import CONTROL_FLOW
from tvm_neuron.frontend.mxnet.operators import CONVERTERS

FLOAT32 = 1e-5
ON_CORE = 1e-4
"""Of the largest result: sums of a few hundred products in another order; functions of ACT are good to 1e-5."""

LABELS = ("label", "softmax_label")


def check(name: str, found: Mapping[str, np.ndarray], tolerance: float) -> None:
    wanted = outputs_of(name)
    assert [*found] == [*wanted]
    for got, right in zip(found.values(), wanted.values(), strict=True):
        assert (got.shape, got.dtype) == (right.shape, right.dtype)
        largest = np.abs(right).max(initial=1)
        np.testing.assert_allclose(got, right, rtol=tolerance, atol=tolerance / 10 * largest)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    inputs, weights = given(name)
    taken = {key: value for key, value in inputs.items() if key not in LABELS}
    model = mxnet.to_onnx(symbol_of(name), weights, {key: value.shape for key, value in taken.items()}, {})
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results = session.run(None, {each.name: taken[each.name] for each in session.get_inputs()})
    check(name, dict(zip([each.name for each in session.get_outputs()], results, strict=True)), FLOAT32)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NETWORKS, "detection", "foreach", "while_loop"])
def test_networks(name: str) -> None:
    inputs, weights = given(name)
    shapes = {key: value.shape for key, value in inputs.items()}
    mod, params = relay.frontend.from_mxnet(Written(name), shapes, arg_params=weights)
    options = tvm_neuron.BuildOptions(fp32_cast="none")
    executor = relay.build(mod, "neuron/inf2", params=params, options=options)["default"](tvm.cpu())
    executor.run(**inputs)
    names = [spec.name for spec in executor.outputs]
    check(name, {key: executor.get_output(number).numpy() for number, key in enumerate(names)}, ON_CORE)


def test_every_converter_is_recorded() -> None:
    found = {node.op for name in NAMES for node in symbol_of(name).nodes}
    seen = {CONVERTERS[op] for op in found if op in CONVERTERS}
    assert found >= set(CONTROL_FLOW)
    assert [op for op, convert in CONVERTERS.items() if convert not in seen] == ["amp_multicast"]  # see test_dtypes
