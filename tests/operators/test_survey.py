"""The listing says what the partition says, and the files made of it are up to date."""

import json

import pytest
from onnx import TensorProto, helper

from tests.onnx_models import make_model
from tvm_neuron.build import BuildOptions
from tvm_neuron.operators import Listing, Operator, Outcome, listing
from tvm_neuron.operators.listing import PATH, read, write
from tvm_neuron.operators.manual import MANUAL, lines, manual
from tvm_neuron.operators.samples import CONSTANT, Sample, samples
from tvm_neuron.operators.survey import survey


def sample(op: str, dtype: int, condition: str = "", **attributes: int | list[int]) -> Sample:
    node = helper.make_node(op, ["x"], ["y"], name="node", **attributes)
    name = helper.tensor_dtype_to_np_dtype(dtype).name
    return Sample(make_model([node], {"x": [4, 8]}, ["y"], dtype=dtype), name, condition)


def test_outcomes_are_those_of_the_partition() -> None:
    tried = [
        sample("Relu", TensorProto.FLOAT),
        sample("Relu", TensorProto.FLOAT16),
        sample("Relu", TensorProto.FLOAT, "something more"),
        sample("NonZero", TensorProto.FLOAT),
    ]
    in_onnx, in_relax = survey(BuildOptions(device="neuron/inf2"), tried)
    rows = {operator.name: operator.outcomes for operator in in_onnx.operators}
    assert in_onnx.device == "inf2"
    assert rows["Relu"] == (Outcome("neuroncore", ("float16", "float32"), 2),)
    (refused,) = rows["NonZero"]
    assert (refused.where, refused.dtypes) == ("cpu", ("float32",))
    assert refused.reason == "The size of its result does not depend on the data, as that of nonzero does"
    assert rows["Conv"] == ()
    assert lines(Operator("Conv", ())) == ["not tried: there is no sample of it"]
    assert {operator.name for operator in in_relax.operators} == {"nn.relu", "nonzero"}


def test_a_refused_form_has_its_attributes_and_none_of_the_samples_names() -> None:
    listed, _ = survey(tried=[sample("Cast", TensorProto.FLOAT, to=TensorProto.STRING)])
    (outcome,) = next(operator for operator in listed.operators if operator.name == "Cast").outcomes
    assert outcome.where == "refused"
    assert outcome.example == "to=8"
    assert "'x'" not in outcome.reason
    assert lines(Operator("Cast", (outcome,)))[0].startswith("refused: float32 (to=8): ")


@pytest.mark.slow
def test_samples_know_constants_and_dtypes() -> None:
    found = [one for one in samples() if one.op == "Add"]
    assert {one.dtype for one in found} >= {"float32", "float16", "bfloat16", "int32", "int64", "uint8"}
    constant = next(one for one in found if one.condition == CONSTANT)
    assert [len(constant.model.graph.input), len(constant.model.graph.initializer)] == [1, 1]


def test_the_file_round_trips() -> None:
    text = PATH.read_text()
    assert write(read(text)) == text
    assert json.loads(text)


def test_the_manual_is_made_from_the_file() -> None:
    assert MANUAL.read_text() == manual(read(PATH.read_text())), "python -m tvm_neuron.operators.manual text"


@pytest.mark.slow
def test_an_eighth_of_the_file_is_up_to_date() -> None:
    tried = list(samples())
    some = sorted({one.op for one in tried})[::8]
    found, _ = survey(tried=[one for one in tried if one.op in some])
    written = {operator.name: operator for operator in listing("ONNX").operators}
    made = {operator.name: operator for operator in found.operators if operator.name in some}
    assert made == {name: written[name] for name in some}, "python -m tvm_neuron.operators.manual"


@pytest.mark.many
def test_the_file_is_up_to_date() -> None:
    assert PATH.read_text() == write(survey()), "python -m tvm_neuron.operators.manual"


def test_frameworks() -> None:
    found = listing("ONNX")
    assert isinstance(found, Listing)
    assert next(op for op in found.operators if op.name == "Conv").is_on_neuroncore
    assert next(op for op in listing("RELAX").operators if op.name == "nn.conv2d").is_on_neuroncore


@pytest.mark.parametrize(
    ("framework", "some"),
    [
        pytest.param("MXNET", {"Convolution", "RNN", "elemwise_add"}, id="MXNET"),
        pytest.param("XLA", {"stablehlo.convolution", "chlo.top_k"}, marks=pytest.mark.jax, id="XLA"),
        pytest.param("PYTORCH", {"aten.convolution", "aten.kthvalue"}, marks=pytest.mark.torch, id="PYTORCH"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_operators_that_become_others(framework: str, some: set[str]) -> None:
    found = listing(framework)
    assert found.becomes == "ONNX"
    known = [operator.name for operator in found.operators]
    assert known == sorted(known)
    assert some <= {*known}
