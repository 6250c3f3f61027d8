"""A part of a concatenation is written in its place, and may be read there before the other parts are written."""

import numpy as np
import pytest
import tvm
from onnx import helper

from tests.onnx_models import make_model, reference
from tvm_neuron import BuildOptions, relay


@pytest.mark.parametrize(("chip", "fp32_cast"), [("inf1", "all"), ("inf2", "matmult")])
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("early", ["MatMul", "turned", "ReduceMax"])
def test_parts_of_a_concatenation_that_are_read_before_it_is_whole(
    early: str, saturate: bool, chip: str, fp32_cast: str
) -> None:
    """Copies of it (cast, turned, without infinities) made for such a reader don't serve those of the whole."""
    rng = np.random.default_rng(0)
    weights = {
        "a": rng.standard_normal((16, 24)) / 4, "b": rng.standard_normal((24, 24)) / 5,
        "c": rng.standard_normal((24, 20)) / 5, "constant": rng.standard_normal((1, 5, 24)),
    }  # fmt: skip
    read = {
        "MatMul": [helper.make_node("MatMul", ["first", "b"], ["read"])],
        "turned": [
            helper.make_node("Transpose", ["first"], ["turned"], perm=[0, 2, 1]),
            helper.make_node("Mul", ["turned", "turned"], ["square"]),
            helper.make_node("Transpose", ["square"], ["read"], perm=[0, 2, 1]),
        ],
        "ReduceMax": [
            helper.make_node("ReduceMax", ["first"], ["most"], axes=[2], keepdims=1),
            helper.make_node("Sub", ["first", "most"], ["read"]),
        ],
    }[early]
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["first"]),
        *read,
        helper.make_node("Sigmoid", ["read"], ["last"]),
        helper.make_node("Concat", ["first", "constant", "last"], ["whole"], axis=1),
        helper.make_node("MatMul", ["whole", "c"], ["y"]),
        helper.make_node("Sigmoid", ["whole"], ["z"]),
    ]
    for number, node in enumerate(nodes):
        node.name = f"n{number}"
    floats = {name: array.astype(np.float32) for name, array in weights.items()}
    model = make_model(nodes, {"x": (1, 8, 16)}, ["y", "z"], floats, opset=13)
    x = rng.standard_normal((1, 8, 16)).astype(np.float32)
    mod, params = relay.frontend.from_onnx(model)
    options = BuildOptions(fp32_cast=fp32_cast, must_compile=True, saturate_infinity=saturate)
    library = relay.build(mod, target=f"neuron/{chip}", params=params, options=options)
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(x=x)
    for number, wanted in enumerate(reference(model, {"x": x})):
        found = executor.get_output(number).numpy()
        np.testing.assert_allclose(found, wanted, atol=0.03)  # some roundings of 2 ** -9 of numbers of up to 4


def test_heads_of_a_part() -> None:
    """Attention by rows of a concatenation that its own result comes into; both are turned by the PE array."""
    rng = np.random.default_rng(1)
    shapes = {"w": (16, 96), "scale": (8, 32), "before": (1, 3, 96), "between": (1, 7, 96)}
    weights = {name: (rng.standard_normal(shape) / 4).astype(np.float32) for name, shape in shapes.items()}
    weights |= {"heads": np.array([1, 8, 3, 32]), "rows": np.array([1, 8, -1])}
    inputs = {"x": (1, 8, 16), "bias": (1, 3, 8, 32), "keys": (1, 3, 32, 8), "values": (1, 3, 8, 32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["first"]),
        helper.make_node("Reshape", ["first", "heads"], ["split"]),
        helper.make_node("Transpose", ["split"], ["turned"], perm=[0, 2, 1, 3]),
        helper.make_node("Mul", ["turned", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias"], ["queries"]),
        helper.make_node("MatMul", ["queries", "keys"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "values"], ["found"]),
        helper.make_node("Transpose", ["found"], ["back"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["back", "rows"], ["last"]),
        helper.make_node("Concat", ["before", "first", "between", "last"], ["y"], axis=1),
    ]
    for number, node in enumerate(nodes):
        node.name = f"n{number}"
    model = make_model(nodes, inputs, ["y"], weights)
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in inputs.items()}
    mod, params = relay.frontend.from_onnx(model)
    executor = relay.graph_executor.GraphModule(relay.build(mod, target="neuron", params=params)["default"](tvm.cpu()))
    executor.run(**given)
    (wanted,) = reference(model, given)
    np.testing.assert_allclose(executor.get_output(0).numpy(), wanted, atol=0.05)  # roundings of 2 ** -9 of up to 4
