"""The light networks have weights under which inputs matter and numbers stay in range."""

import numpy as np
import onnx
import onnxruntime
import pytest

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.sample_models import LIGHT_NETWORKS, light_network

LARGE = {"bvlc_alexnet", "densenet121"}
LIKE_ALEXNET = {"vgg19", "zfnet512"}  # and larger
NAMES = [
    pytest.param(name, marks=pytest.mark.slow if name in LARGE else pytest.mark.many if name in LIKE_ALEXNET else ())
    for name in LIGHT_NETWORKS
]


@pytest.mark.parametrize("name", NAMES)
def test_logits_are_spread_and_depend_on_the_input(name: str) -> None:
    model = light_network(name)
    softmax = [node.input[0] for node in model.graph.node if node.op_type == "Softmax"]
    if softmax:
        del model.graph.output[:]
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(softmax[0]))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    rng = np.random.default_rng(0)
    feed = session.get_inputs()[0].name
    one, two = (session.run(None, {feed: rng.standard_normal((1, 3, 224, 224), "float32")})[0] for _ in range(2))
    assert 1 < one.std() < 4
    assert np.linalg.norm(one - two) > 0.05 * np.linalg.norm(one)


def test_the_seed_decides_the_weights() -> None:
    first, again, other = (light_network("squeezenet", seed).SerializeToString() for seed in (0, 0, 1))
    assert first == again != other


def test_an_unknown_network_is_refused() -> None:
    with pytest.raises(ModelError, match="no light network 'lenet'; there are: bvlc_alexnet, "):
        light_network("lenet")
