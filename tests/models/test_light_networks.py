"""The nine light networks on both chips, one image on one of them and two on the other, against onnxruntime."""

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_neuron
from tests.models.references import Reference, reference
from tvm_neuron import relay
from tvm_neuron.frontend.sample_models import LIGHT_NETWORKS

pytestmark = pytest.mark.slow
LIKE_OTHERS = {"vgg19", "zfnet512", "inception_v2", "densenet121"}
"""AlexNet is the smallest of its kind, Inception v1 of its; a DenseNet is in tests/relay_language."""
NAMES = [pytest.param(name, marks=pytest.mark.many if name in LIKE_OTHERS else ()) for name in LIGHT_NETWORKS]


@pytest.fixture(scope="module", params=NAMES)
def network(request: pytest.FixtureRequest) -> Reference:
    return reference(request.param)


@pytest.mark.parametrize(("target", "batch"), [("neuron/inf1", 2), ("neuron/inf2", 1)])
def test_agrees_with_onnxruntime(network: Reference, target: str, batch: int) -> None:
    images = network.images[:batch]
    mod, params = relay.frontend.from_onnx(network.model, shape={network.input: images.shape})
    library = relay.build(mod, target=target, params=params)
    places = {row.where for row in tvm_neuron.report(library).placement}
    assert "neuroncore" in places
    assert places <= {"neuroncore", "compile time"}
    executor = relay.graph_executor.GraphModule(library["default"](tvm.device("neuron")))
    executor.run(**{network.input: images})
    check(network, executor.get_output(0).numpy())


def test_squeezenet_through_tvm_compile() -> None:
    network = reference("squeezenet")
    mod, _ = relay.frontend.from_onnx(network.model)
    library = tvm.compile(mod, target="neuron")
    assert {row.where for row in tvm_neuron.report(library).placement} <= {"neuroncore", "compile time"}
    machine = relax.VirtualMachine(library, tvm_neuron.device())
    check(network, machine["main"](tvm.runtime.tensor(network.images[:1])).numpy())


def check(network: Reference, actual: np.ndarray) -> None:
    error, bound = network.error(actual), network.bound(len(actual))
    assert error <= bound, f"relative L2 error {error:.4f}; bf16 explains {bound:.4f}"
