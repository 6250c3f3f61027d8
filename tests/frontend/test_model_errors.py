"""Each thing that can be wrong with a model gives one ModelError that names it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper

import tvm_neuron
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import from_onnx

RELU = helper.make_node("Relu", ["x"], ["y"], name="r")


def relu(shape: list[int | str], **kwargs) -> onnx.ModelProto:
    return make_model([RELU], {"x": shape}, ["y"], **kwargs)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.onnx: no such file"):
        from_onnx(tmp_path / "none.onnx")


@pytest.mark.parametrize("name", ["none.pt2", "none.pt", "none.keras", "none.pb", "none.tflite", "none.mlir"])
def test_no_such_file_of_a_framework_whether_it_is_installed_or_not(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match=rf"{name}' can't be read: No such file or directory"):
        tvm_neuron.compile(tmp_path / name)


@pytest.mark.parametrize("data", [b"", b"plain text, not a model", bytes(range(256))])
def test_not_an_onnx_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelError, match="not an ONNX file"):
        from_onnx(path)


@pytest.mark.parametrize(
    ("given", "opset", "message"),
    [
        (relu([1]).SerializeToString(), None, "path of a file, got bytes: read bytes with onnx.load_model_from_string"),
        (None, None, "from_onnx takes a ModelProto or the path of a file, got NoneType"),
        (relu([1]), "17", "opset is '17'; it must be a whole number, or left out"),
    ],
)
def test_what_is_no_model(given: Any, opset: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        from_onnx(given, opset=opset)


def test_unknown_opset() -> None:
    model = relu([1])
    model.opset_import[0].version = 999
    with pytest.raises(ModelError, match=r"opset 999 is unknown: onnx .* knows 1 to \d+"):
        from_onnx(model)


def test_dynamic_shape_names_the_input_and_how_to_give_it() -> None:
    with pytest.raises(
        ModelError, match=r"input 'x' has the dynamic dimension 'N' at axis 0; .*shape=\{'x': \(1, 3\)\}"
    ):
        from_onnx(relu(["N", 3]))
    assert from_onnx(relu(["N", 3]), shape={"x": (2, 3)})[0]["main"].params[0].ty.shape[0] == 2


def test_shape_of_an_unknown_input() -> None:
    with pytest.raises(ModelError, match="shape is given for 'z', but the model's inputs are: x"):
        from_onnx(relu([1]), shape={"z": (1,)})


def test_shape_of_another_rank() -> None:
    with pytest.raises(ModelError, match="input 'x' has 1 axes, but the given shape"):
        from_onnx(relu([1]), shape={"x": (1, 2)})


def test_shape_without_a_size() -> None:
    with pytest.raises(ModelError, match=r"input 'x': the given shape has '\?' at axis 1; give a size"):
        from_onnx(relu([1, 2]), shape={"x": (1, relay.Any())})


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(TensorProto.STRING, "string"), (TensorProto.COMPLEX64, "complex64")],
)
def test_unsupported_dtype(dtype: int, name: str) -> None:
    model = relu([1])
    model.graph.input[0].type.tensor_type.elem_type = dtype
    with pytest.raises(ModelError, match=f"input 'x' has dtype {name}, which is not supported"):
        from_onnx(model)


def test_wiring() -> None:
    model = relu([1])
    model.graph.node[0].input[0] = "nowhere"
    with pytest.raises(ModelError, match=r"operator 'r' \(Relu\) reads 'nowhere', which nothing before it makes"):
        from_onnx(model)
    model = relu([1])
    model.graph.output[0].name = "other"
    with pytest.raises(ModelError, match="output 'other' is made by no operator of the model"):
        from_onnx(model)
    del model.graph.output[:]
    with pytest.raises(ModelError, match="the model has no outputs"):
        from_onnx(model)


def test_unknown_operators() -> None:
    model = relu([1])
    model.graph.node[0].op_type = "Frobnicate"
    with pytest.raises(ModelError, match="operators that can't be imported: Frobnicate"):
        from_onnx(model)


@pytest.mark.parametrize(("inner", "way"), [("f", "f -> f"), ("g", "f -> g -> f")])
def test_functions_that_call_themselves(inner: str, way: str) -> None:
    domains = [helper.make_opsetid("own", 1), helper.make_opsetid("", 18)]
    bodies = {"f": helper.make_node(inner, ["a"], ["b"], domain="own"), "g": helper.make_node("f", ["a"], ["b"])}
    bodies["g"].domain = "own"
    model = relu([1])
    model.graph.node[0].CopyFrom(helper.make_node("f", ["x"], ["y"], domain="own"))
    model.opset_import.append(domains[0])
    model.functions.extend(helper.make_function("own", f, ["a"], ["b"], [node], domains) for f, node in bodies.items())
    with pytest.raises(ModelError, match=f"function 'f' calls itself \\({way}\\)"):
        from_onnx(model)


@pytest.mark.parametrize("k", [-1, 4])
def test_more_of_the_largest_than_there_are(k: int) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], name="most", axis=-1)
    model = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", 1, [2, 3])], [], [])
    model.initializer.append(onnx.numpy_helper.from_array(np.array([k]), "k"))
    model.output.extend([helper.make_tensor_value_info("y", 1, None), helper.make_tensor_value_info("i", 7, None)])
    with pytest.raises(ModelError, match=rf"'most' \(TopK\) can't be imported: its k is {k}; axis 1 has 3 elements"):
        from_onnx(helper.make_model(model, opset_imports=[helper.make_opsetid("", 18)], ir_version=10))


def test_an_expansion_to_nothing_of_another_shape() -> None:
    model = make_model([RELU], {"x": [2, 3]}, ["y"], {"s": np.array([0, 3])})
    model.graph.node[0].op_type = "Expand"
    model.graph.node[0].input.append("s")
    with pytest.raises(ModelError, match=r"shape \[2, 3\] can't be expanded to \[0, 3\]"):
        from_onnx(model)


def test_a_node_that_cannot_be_converted_is_named_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    concat = helper.make_node("Concat", ["x", "w"], ["y"], name="join", axis=0)
    model = make_model([RELU], {"x": [2, 3]}, ["y"])
    model.graph.node[0].CopyFrom(concat)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((4, 5), "float32"), "w"))
    with pytest.raises(ModelError, match=r"operator 'join' \(Concat\) can't be imported: "):
        from_onnx(model)
    assert capfd.readouterr() == ("", "")


def test_shapes_in_messages_are_plain() -> None:
    model = make_model([helper.make_node("Reshape", ["x", "s"], ["y"], name="flat")], {"x": [2, 3]}, ["y"])
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([7, 7]), "s"))
    with pytest.raises(ModelError, match=r"old shape is \[2, 3\], with product 6, .* \[7, 7\], with product 49"):
        from_onnx(model)


def constants() -> onnx.ModelProto:
    """y = softmax(reshape(x + c, s)), c a Constant and s an initializer."""
    values = onnx.numpy_helper.from_array(np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32))
    nodes = [
        helper.make_node("Constant", [], ["c"], value=values),
        helper.make_node("Add", ["x", "c"], ["a"]),
        helper.make_node("Reshape", ["a", "s"], ["b"]),
        helper.make_node("Softmax", ["b"], ["y"], axis=1),
    ]
    return make_model(nodes, {"x": [4, 8]}, ["y"], {"s": np.array([8, 4])})


def damage_tensor(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].raw_data = b"1234567"


def damage_constant(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute[0].name = "worth"


def damage_sparse(model: onnx.ModelProto) -> None:
    places = onnx.numpy_helper.from_array(np.array([0, 99]), "places")
    values = onnx.numpy_helper.from_array(np.ones(2, np.float32), "v")
    sparse = helper.make_sparse_tensor(values, places, (4, 8))
    model.graph.node[0].attribute[0].CopyFrom(helper.make_attribute("sparse_value", sparse))


def damage_dtype(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.elem_type = 99


def damage_input(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.elem_type = 0


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_tensor, "the model is damaged: tensor 's': buffer size must be a multiple of element size"),
        (damage_constant, "the model is damaged: Constant '' has no value"),
        (damage_sparse, "the model is damaged: sparse tensor 'v': index 99 is out of bounds"),
        (damage_dtype, "input 'x' has dtype number 99, which is not supported; supported: "),
        (damage_input, "input 'x' has no dtype in the model"),
    ],
)
def test_damaged_parts(damage: Callable[[onnx.ModelProto], None], message: str) -> None:
    model = constants()
    damage(model)
    with pytest.raises(ModelError, match=message):
        from_onnx(model)


def test_damaged_bytes_are_a_models_error() -> None:
    rng = np.random.default_rng(4)
    refused = 0
    for _ in range(400):
        content = bytearray(constants().SerializeToString())
        for place in rng.integers(0, len(content), rng.integers(1, 3)):
            content[place] = rng.integers(0, 256)
        try:
            from_onnx(onnx.load_model_from_string(bytes(content)))
        except (ModelError, DecodeError):
            refused += 1
    assert refused > 100
