"""from_coreml: networks of CoreML's layers agree with NumPy; what is no such network is told."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.errors import ModelError

RNG = np.random.default_rng(6)


def _builder() -> Any:
    pytest.importorskip("coremltools")
    from coremltools.models import datatypes
    from coremltools.models.neural_network import NeuralNetworkBuilder

    return NeuralNetworkBuilder([("x", datatypes.Array(3, 6, 6))], [("y", datatypes.Array(5))])


def _model(builder: Any) -> Any:
    class Model:
        def get_spec(self) -> Any:
            return builder.spec

    return Model()


@pytest.mark.filterwarnings("ignore")  # of coremltools, which warns of versions of its peers
def test_a_network_agrees_with_numpy() -> None:
    builder = _builder()
    weights, bias = RNG.standard_normal((4, 3)).astype("float32"), RNG.standard_normal(4).astype("float32")
    gamma, beta, mean = (RNG.standard_normal(4).astype("float32") for _ in range(3))
    variance = RNG.uniform(0.5, 2, 4).astype("float32")
    product, shift = RNG.standard_normal((5, 36)).astype("float32"), RNG.standard_normal(5).astype("float32")
    kernel = weights.T[None, None]
    names = {"input_name": "x", "output_name": "conv"}
    builder.add_convolution("conv", 3, 4, 1, 1, 1, 1, "same", 1, kernel, bias, True, **names)
    builder.add_batchnorm("norm", 4, gamma, beta, mean, variance, "conv", "norm", epsilon=1e-3)
    builder.add_activation("leaky", "LEAKYRELU", "norm", "leaky", [0.1])
    builder.add_activation("linear", "LINEAR", "leaky", "linear", [2.0, 0.5])
    builder.add_elementwise("sum", ["leaky", "linear"], "sum", "ADD")
    builder.add_pooling("pool", 2, 2, 2, 2, "MAX", "VALID", "sum", "pool")
    builder.add_inner_product("fc", product, shift, 36, 5, True, "pool", "fc")
    builder.add_softmax("softmax", "fc", "y")
    mod, params = relay.frontend.from_coreml(_model(builder), {"x": (1, 3, 6, 6)})
    options = tvm_neuron.BuildOptions(fp32_cast="none")
    library = relay.build(mod, "neuron/inf2", params=params, options=options)
    report = tvm_neuron.report(library)
    assert {"conv", "norm", "pool", "fc", "softmax"} <= {row.name for row in report.placement}
    assert not report.placed("cpu")
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    x = RNG.standard_normal((1, 3, 6, 6)).astype("float32")
    executor.run(x=x)
    made = np.einsum("oi,nihw->nohw", weights.astype("float64"), x) + bias[:, None, None]
    scale = gamma / np.sqrt(variance.astype("float64") + 1e-3)
    made = (made - mean[:, None, None]) * scale[:, None, None] + beta[:, None, None]
    made = np.where(made > 0, made, 0.1 * made)
    made = made + (2.0 * made + 0.5)
    made = made.reshape(1, 4, 3, 2, 3, 2).max((3, 5)).reshape(1, 36) @ product.T + shift
    exact = np.exp(made - made.max()) / np.exp(made - made.max()).sum()
    np.testing.assert_allclose(executor.get_output(0).numpy(), exact, rtol=1e-4, atol=1e-6)  # logits of 100, in float32


@pytest.mark.filterwarnings("ignore")
def test_what_is_refused(tmp_path: Path) -> None:
    builder = _builder()
    builder.add_unary("root", "x", "y", "sqrt")
    with pytest.raises(ModelError, match="layer 'root' is a unary; known are convolution, pooling"):
        relay.frontend.from_coreml(_model(builder))
    with pytest.raises(ModelError, match=r"from_coreml takes a coremltools\.models\.MLModel or a path, got int"):
        relay.frontend.from_coreml(3)
    (tmp_path / "x.mlmodel").write_bytes(b"\xff\xff\xff")
    with pytest.raises(ModelError, match="can't be read as a CoreML model"):
        relay.frontend.from_coreml(tmp_path / "x.mlmodel")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coremltools", None)
    with pytest.raises(ModelError, match="from_coreml needs the package 'coremltools': pip install coremltools"):
        relay.frontend.from_coreml("m.mlmodel")
