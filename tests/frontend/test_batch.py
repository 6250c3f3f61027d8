"""Another batch than the one baked into a model's Reshape targets."""

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.onnx_models import make_model
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import from_onnx
from tvm_neuron.frontend.sample_models import _FOLDER, LIGHT_NETWORKS


def reshape(target: list[int]) -> onnx.ModelProto:
    node = helper.make_node("Reshape", ["x", "t"], ["y"], name="flat")
    return make_model([node], {"x": [1, 6, 2]}, ["y"], {"t": np.array(target)})


@pytest.mark.parametrize(
    ("target", "expected"),
    [([1, 12], (4, 12)), ([1, -1], (4, 12)), ([-1, 12], (4, 12)), ([0, 12], (4, 12)), ([1, 3, 2, 2], (4, 3, 2, 2))],
)
def test_the_leading_batch_follows(target: list[int], expected: tuple[int, ...]) -> None:
    mod, _ = from_onnx(reshape(target), shape={"x": (4, 6, 2)})
    assert tuple(int(dim) for dim in mod["main"].ret_ty.shape) == expected


def test_a_batch_inside_another_axis_is_refused() -> None:
    with pytest.raises(ModelError, match=r"operator 'flat' \(Reshape\) has the fixed target \[12\].*from 1 to 4"):
        from_onnx(reshape([12]), shape={"x": (4, 6, 2)})


def test_a_reshape_of_a_weight_stays() -> None:
    weight = np.arange(32, dtype="float32")
    nodes = [helper.make_node("Reshape", ["w", "t"], ["v"]), helper.make_node("Mul", ["x", "v"], ["y"])]
    model = make_model(nodes, {"x": [1, 32]}, ["y"], {"w": weight, "t": np.array([1, 32])})
    mod, _ = from_onnx(model, shape={"x": (4, 32)})
    assert tuple(int(dim) for dim in mod["main"].ret_ty.shape) == (4, 32)


@pytest.mark.parametrize("name", LIGHT_NETWORKS)
def test_the_light_networks_take_a_batch_of_four(name: str) -> None:
    model = onnx.load(_FOLDER / f"light_{name}.onnx")
    names = {proto.name for proto in model.graph.initializer}
    (value,) = [value.name for value in model.graph.input if value.name not in names]
    mod, _ = from_onnx(model, shape={value: (4, 3, 224, 224)})
    assert int(mod["main"].ret_ty.shape[0]) == 4
