"""An operator in the middle of a network that no NeuronCore can run: two subgraphs around a part on the CPU."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper

import tvm_neuron
from tests.onnx_models import make_model, reference
from tvm_neuron import BuildOptions, relay, runtime
from tvm_neuron.errors import PlacementError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((1, 3, 12, 12)).astype(np.float32)
W1 = (RNG.standard_normal((16, 3, 3, 3)) / 5).astype(np.float32)
W2 = (RNG.standard_normal((8, 16, 3, 3)) / 12).astype(np.float32)
_SAME = {"pads": [1, 1, 1, 1]}
_HEAD = [
    helper.make_node("Conv", ["x", "w1"], ["c"], name="conv1", **_SAME),
    helper.make_node("Relu", ["c"], ["r"], name="relu1"),
]
_TAIL = [
    helper.make_node("Cast", ["found"], ["number"], name="cast", to=TensorProto.FLOAT),
    helper.make_node("ReduceMean", ["number"], ["mean"], name="mean", keepdims=0),
    helper.make_node("Mul", ["r", "mean"], ["scaled"], name="mul"),
    helper.make_node("Conv", ["scaled", "w2"], ["c2"], name="conv2", **_SAME),
    helper.make_node("Relu", ["c2"], ["y"], name="relu2"),
]


def non_zero() -> onnx.ModelProto:
    """Scales an image by the mean position of what is not zero in it."""
    middle = [helper.make_node("NonZero", ["r"], ["found"], name="middle")]
    return make_model([*_HEAD, *middle, *_TAIL], {"x": X.shape}, ["y"], {"w1": W1, "w2": W2})


def non_max_suppression() -> onnx.ModelProto:
    """Scales an image by the mean index of the boxes that are left of 16, one for each channel."""
    corner = np.random.default_rng(2).uniform(0, 8, (16, 2)).astype(np.float32)
    weights = {
        "w1": W1, "w2": W2, "boxes": np.concatenate([corner, corner + 4], axis=1)[None], "most": np.array([16]),
        "overlap": np.array([0.2], np.float32), "least": np.array([0.3], np.float32), "shape": np.array([1, 1, 16]),
    }  # fmt: skip
    middle = [
        helper.make_node("GlobalAveragePool", ["r"], ["pooled"], name="pool"),
        helper.make_node("Reshape", ["pooled", "shape"], ["scores"], name="reshape"),
        helper.make_node(
            "NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["found"], name="middle"
        ),
    ]
    return make_model([*_HEAD, *middle, *_TAIL], {"x": X.shape}, ["y"], weights)


MODELS = [non_zero, non_max_suppression]


@pytest.mark.parametrize("make", MODELS)
def test_two_subgraphs_around_a_part_on_the_cpu(make: Callable[[], onnx.ModelProto]) -> None:
    model = make()
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params)
    order = runtime.manifest(library)["order"]
    assert list(runtime.neffs(library)) == ["neuron_0", "neuron_1"]
    assert (order[0], order[-1]) == ("neuron_0", "neuron_1")
    assert all(step.startswith("cpu:") for step in order[1:-1])
    rows = {row.name: row for row in tvm_neuron.report(library).placement}
    assert rows["middle"].where == "cpu"
    assert "depend on the data" in rows["middle"].reason
    assert {rows[name].where for name in ("conv1", "relu1", "conv2", "relu2")} == {"neuroncore"}
    executor = relay.graph_executor.GraphModule(library["default"](tvm.device("neuron")))
    executor.run(x=X)
    (wanted,) = reference(model, {"x": X})
    actual = executor.get_output(0).numpy()
    # Operands of two convolutions in bfloat16: 2**-9 * sqrt(2 * 2) as independent errors, and twice that to spare.
    assert np.linalg.norm(actual - wanted) / np.linalg.norm(wanted) < 2 * 2.0**-9 * 2


@pytest.mark.parametrize("make", MODELS)
def test_must_compile_names_what_is_left_to_the_cpu(make: Callable[[], onnx.ModelProto]) -> None:
    mod, params = relay.frontend.from_onnx(make())
    with pytest.raises(PlacementError, match=r"operators? can't run on the NeuronCore") as caught:
        relay.build(mod, target="neuron", params=params, options=BuildOptions(must_compile=True))
    lines = str(caught.value).split("\n")
    assert any(line.strip().startswith("middle (NonZero): " if make is non_zero else "middle (Non") for line in lines)
    assert not any("conv1" in line or "conv2" in line for line in lines)
