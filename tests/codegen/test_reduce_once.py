"""What is reduced twice in the same way is so once; what differs in anything is not taken for the same."""

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.codegen.on_core import check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.isa import TensorReduce


def instance_norm(shape: tuple[int, ...]) -> ModelProto:
    node = helper.make_node("InstanceNormalization", ["x", "gamma", "beta"], ["y"])
    rng = np.random.default_rng(len(shape))
    weights = {name: rng.uniform(0.5, 1.5, shape[1]).astype(np.float32) for name in ("gamma", "beta")}
    return make_model([node], {"x": shape}, ["y"], weights)


def reduced(kinds: list[tuple[str, int]]) -> ModelProto:
    """The sum of x reduced in these ways, each along an axis, times x."""
    axes = {f"axis{axis}": np.array([axis]) for _, axis in kinds}
    nodes = [helper.make_node(kind, ["x", f"axis{axis}"], [f"r{n}"]) for n, (kind, axis) in enumerate(kinds)]
    nodes += [helper.make_node("Sum", [f"r{n}" for n in range(len(kinds))], ["s"])]
    nodes += [helper.make_node("Mul", ["s", "x"], ["y"])]
    return make_model(nodes, {"x": (4, 12, 12)}, ["y"], axes)


def reductions(model: ModelProto) -> int:
    program = compile_model(model, "neuron/inf2").program
    return sum(isinstance(instruction, TensorReduce) for _, instruction in program.instructions())


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
@pytest.mark.parametrize("shape", [(2, 3, 40), (1, 130, 7, 9)])
def test_mean_of_a_norm_and_of_its_variance(shape: tuple[int, ...], chip: str) -> None:
    model = instance_norm(shape)
    x = 3 + np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    check(model, {"x": x}, chip, "all")
    assert reductions(model) <= 2


@pytest.mark.parametrize(
    "kinds",
    [
        [("ReduceMax", 2), ("ReduceMax", 2)],
        [("ReduceMean", 2), ("ReduceSum", 2), ("ReduceMean", 2)],
        [("ReduceMax", 1), ("ReduceMax", 2)],
        [("ReduceMax", 2), ("ReduceMin", 2)],
    ],
)
def test_what_is_the_same(kinds: list[tuple[str, int]]) -> None:
    model = reduced(kinds)
    check(model, {"x": np.random.default_rng(8).standard_normal((4, 12, 12)).astype(np.float32)}, "inf2", "all")
