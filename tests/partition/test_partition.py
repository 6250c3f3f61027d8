"""The cut: flat subgraphs with their constants inside, the rest in main, a row for every operator."""

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper
from tvm import relax

from tests.onnx_models import make_model, mixed_model
from tvm_neuron.errors import PlacementError
from tvm_neuron.frontend import from_onnx, normalize
from tvm_neuron.frontend.origin import OUTPUTS_ATTR, bindings_of, origin_of
from tvm_neuron.frontend.sample_models import LIGHT_NETWORKS, light_network
from tvm_neuron.partition import Match, Partition, Refusal, Verdict, check_must_compile, partition
from tvm_neuron.partition.constraints import IsConstant
from tvm_neuron.partition.plan import CanSchedule
from tvm_neuron.partition.spans import SpansOf

LARGE = {"bvlc_alexnet", "densenet121"}
LIKE_ALEXNET = {"vgg19", "zfnet512"}  # and larger
NAMES = [
    pytest.param(name, marks=pytest.mark.slow if name in LARGE else pytest.mark.many if name in LIKE_ALEXNET else ())
    for name in LIGHT_NETWORKS
]


def cut(model: onnx.ModelProto, can_schedule: CanSchedule | None = None) -> Partition:
    mod, params = from_onnx(model)
    return partition(normalize(mod, params), can_schedule)


def calls(func: relax.Function) -> list[relax.Call]:
    return [binding.value for binding in bindings_of(func) if isinstance(binding.value, relax.Call)]


def ops(func: relax.Function) -> list[str]:
    return [call.op.name.removeprefix("relax.") for call in calls(func)]


def names(part: Partition) -> list[str]:
    return sorted(var.name_hint for var in part.mod.get_global_vars())


def test_two_subgraphs_around_the_cpu() -> None:
    part = cut(mixed_model())
    assert names(part) == ["main", "neuron_0", "neuron_1"]
    assert ops(part.mod["neuron_0"]) == ["nn.conv2d", "nn.relu", "split", "concat", "sigmoid"]
    assert ops(part.mod["neuron_1"]) == ["permute_dims", "astype", "multiply", "mean", "reshape", "matmul"]
    assert [call.op.name for call in calls(part.mod["main"]) if isinstance(call.op, tvm.ir.Op)] == [
        "relax.topk",
    ]
    relax.analysis.well_formed(part.mod)


def test_a_subgraph_is_flat_and_every_call_has_its_origin() -> None:
    func = cut(mixed_model()).mod["neuron_0"]
    assert all(isinstance(call.op, tvm.ir.Op) for call in calls(func))
    assert [origin_of(call).name for call in calls(func)] == ["conv", "relu", "split", "concat", "sigmoid"]
    variables = [binding.var.name for binding in bindings_of(func)]
    assert len(set(variables)) == len(variables)
    assert func.body.body.same_as(bindings_of(func)[-1].var)


def test_results_carry_the_models_names() -> None:
    part = cut(mixed_model())
    first, second = (list(part.mod[f"neuron_{i}"].attrs[OUTPUTS_ATTR]) for i in (0, 1))
    assert first[1:] == ["gate"]
    assert second == ["out"]
    assert first[0] == part.mod["neuron_1"].params[1].name


def test_weights_are_inside_the_subgraph() -> None:
    part = cut(mixed_model())
    assert [var.name for var in part.mod["main"].params] == ["x"]
    assert [var.name for var in part.mod["neuron_0"].params] == ["x"]


def test_rows_for_every_operator() -> None:
    rows = {row.name: row for row in cut(mixed_model()).placements}
    assert list(rows) == [node.name for node in mixed_model().graph.node]
    assert {name for name, row in rows.items() if row.where == "cpu"} == {"topk"}
    assert {name for name, row in rows.items() if row.where == "compile time"} == {"transpose", "identity"}
    assert rows["topk"].reason.endswith("topk takes 20 of 1280 elements")
    assert rows["conv"].reason == ""


def test_must_compile_names_every_operator_on_the_cpu() -> None:
    with pytest.raises(PlacementError, match=r"1 operator can't .*\n  topk \(TopK\): "):
        check_must_compile(cut(mixed_model()).placements)


def test_the_code_generator_may_refuse() -> None:
    def can_schedule(call: relax.Call, is_constant: IsConstant, spans_of: SpansOf) -> Verdict:
        return Refusal("no rule for it") if call.op.name == "relax.sigmoid" else Match()

    rows = {row.name: row for row in cut(mixed_model(), can_schedule).placements}
    assert (rows["sigmoid"].where, rows["sigmoid"].reason) == ("cpu", "no rule for it")
    assert rows["conv"].where == "neuroncore"


def test_data_dependent_shapes_stay_on_the_cpu() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("NonZero", ["r"], ["y"], name="nonzero"),
    ]
    model = make_model(nodes, {"x": [4, 4]}, ["y"])
    rows = {row.name: row for row in cut(model).placements}
    assert rows["relu"].where == "neuroncore"
    assert rows["nonzero"].reason == "The size of its result does not depend on the data, as that of nonzero does"


def test_of_a_branch_that_data_decide_both_sides_are_computed() -> None:
    def branch(op: str) -> onnx.GraphProto:
        output = helper.make_tensor_value_info(op, TensorProto.FLOAT, [4])
        return helper.make_graph([helper.make_node(op, ["e"], [op])], op, [], [output])

    nodes = [
        helper.make_node("Exp", ["x"], ["e"], name="exp"),
        helper.make_node("ReduceMax", ["e"], ["m"], name="max", keepdims=0),
        helper.make_node("Cast", ["m"], ["c"], name="cast", to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], name="if", then_branch=branch("Relu"), else_branch=branch("Neg")),
    ]
    part = cut(make_model(nodes, {"x": [4]}, ["y"]))
    listed = [row.name for row in part.placements]
    assert listed == ["exp", "max", "cast", "if", "if.then_branch/Relu_0", "if.else_branch/Neg_0"]
    where = {row.name: row.where for row in part.placements}
    assert where["if.then_branch/Relu_0"] == where["if.else_branch/Neg_0"] == "neuroncore"


def test_a_relax_module_with_a_branch_stays_on_the_cpu_and_says_so() -> None:
    mod = tvm.script.from_source(
        """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):
        e = R.exp(x)
        if c:
            y = R.nn.relu(e)
        else:
            y = R.negative(e)
        return y
"""
    )
    part = partition(normalize(mod))
    assert names(part) == ["main"]
    reasons = {row.op: row.reason for row in part.placements}
    assert reasons["exp"] == "The model has a branch that data decides (If), so all of it is compiled for the CPU"
    assert reasons["if"] == "its branch is chosen by data"


def test_a_constant_for_both_sides_is_in_each() -> None:
    """The transposed weight feeds a MatMul here and, cast to 64-bit floats, an operator there."""
    nodes = [
        helper.make_node("Transpose", ["w"], ["t"], name="transpose", perm=[1, 0]),
        helper.make_node("MatMul", ["x", "t"], ["y"], name="matmul"),
        helper.make_node("Cast", ["y"], ["i"], name="cast", to=TensorProto.DOUBLE),
        helper.make_node("Cast", ["t"], ["ti"], name="cast_weight", to=TensorProto.DOUBLE),
        helper.make_node("Add", ["i", "ti"], ["z"], name="add"),
    ]
    model = make_model(nodes, {"x": [8, 8]}, ["z"], {"w": np.eye(8, dtype="float32")})
    part = cut(model)
    assert ops(part.mod["neuron_0"]) == ["permute_dims", "matmul"]
    assert [var.name for var in part.mod["neuron_0"].params] == ["x"]
    rows = {row.name: row.where for row in part.placements}
    assert rows == {
        "transpose": "compile time",
        "matmul": "neuroncore",
        "cast": "cpu",
        "cast_weight": "compile time",
        "add": "cpu",
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_light_network_is_one_subgraph_with_all_its_operators(name: str) -> None:
    model = light_network(name)
    part = cut(model)
    assert names(part) == ["main", "neuron_0"]
    assert [row.name for row in part.placements if row.where == "cpu"] == []
    func = part.mod["neuron_0"]
    placed = {row.name for row in part.placements if row.where == "neuroncore"}
    assert placed <= {origin_of(call).name for call in calls(func)}
    assert list(func.attrs[OUTPUTS_ATTR]) == [model.graph.output[0].name]
    assert [row.name for row in part.placements] == [node.name for node in model.graph.node]
