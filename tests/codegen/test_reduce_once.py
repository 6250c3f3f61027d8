"""What is reduced twice in the same way is so once; what differs in anything is not taken for the same."""

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from tests.codegen.on_core import check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.isa import DmaGather, TensorReduce


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


@pytest.mark.parametrize(("step", "gathers"), [(0, 1), (1, 2)])
def test_what_is_gathered_from_equal_tables_is_so_once(step: int, gathers: int) -> None:
    """As the keys and the values of a decoder's step find the row that they go to, each in a table of its own."""
    tables = {f"d{n}": np.arange(20, dtype=np.float32).reshape(10, 2) + n * step for n in range(2)}
    nodes = [helper.make_node("Gather", [f"d{n}", "i"], [f"g{n}"]) for n in range(2)]
    nodes += [helper.make_node("Mul", ["g0", "x"], ["m"]), helper.make_node("Add", ["m", "g1"], ["y"])]
    model = make_model(nodes, {"i": (3,), "x": (3, 2)}, ["y"], tables, dtypes={"i": TensorProto.INT64})
    inputs = {"i": np.array([4, -1, 0]), "x": np.random.default_rng(9).standard_normal((3, 2)).astype(np.float32)}
    check(model, inputs, "inf2", "all")
    program = compile_model(model, "neuron/inf2").program
    assert sum(isinstance(instruction, DmaGather) for _, instruction in program.instructions()) == gathers
