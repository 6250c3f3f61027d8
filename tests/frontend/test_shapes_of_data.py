"""Operators on a shape that only the data tell: each gives what onnxruntime gives, or says why it can't."""

from collections.abc import Iterator

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import defs, helper, numpy_helper

from tests.frontend.test_standard_forms import compiled
from tvm_neuron import relay
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import from_onnx

SINGLE = defs.OpSchema.FormalParameterOption.Single
OTHERS = {"int64": np.array([2, 1]), "float": np.float32([[1, 2], [3, 4]]), "bool": np.array([True, False])}
"""What an operator has beside the shape, by dtype."""
UNFIT = {"Optional", "OptionalHasElement", "OptionalGetElement", "SequenceConstruct", "SplitToSequence"} | {
    "RandomNormalLike", "RandomUniformLike",
}  # fmt: skip
"""Sequences and optionals, which are no outputs, and random numbers."""
X = np.random.default_rng(16).integers(0, 2, (3, 4)).astype(np.float32)


def forms() -> Iterator[tuple[onnx.NodeProto, int]]:
    """Every operator that takes int64, with the shape as each such operand, and which one that is."""
    for schema in defs.get_all_schemas():
        for at, operand in enumerate(schema.inputs):
            if schema.domain or schema.deprecated or schema.name in UNFIT or "tensor(int64)" not in operand.types:
                continue
            names = ["shape" if place == at else _other(schema, place, at) for place in range(at + 1)]
            names += [_other(schema, place, at) for place in range(at + 1, len(schema.inputs))
                      if schema.inputs[place].option == SINGLE]  # fmt: skip
            needed = {name for name, attribute in schema.attributes.items() if attribute.required}
            if None not in names and needed <= {"to", "axis", "direction"}:
                given = {"to": 1, "axis": 0, "direction": "LEFT"}
                yield helper.make_node(schema.name, names, ["y"], **{name: given[name] for name in needed}), at


def _other(schema: defs.OpSchema, place: int, at: int) -> str | None:
    operand = schema.inputs[place]
    if operand.option != SINGLE:
        return ""
    if operand.type_str == schema.inputs[at].type_str:
        return "int64"
    return next((name for name in OTHERS if f"tensor({name})" in operand.types), None)


def model_of(nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    """A model of the operators, each of which makes an output, on the shape of what is not zero in `x`."""
    first = [helper.make_node("NonZero", ["x"], ["found"]), helper.make_node("Shape", ["found"], ["shape"])]
    outputs = [onnx.ValueInfoProto(name=node.output[0]) for node in nodes]
    inputs = [helper.make_tensor_value_info("x", 1, X.shape)]
    weights = [numpy_helper.from_array(array, name) for name, array in OTHERS.items()]
    graph = helper.make_graph([*first, *nodes], "shapes", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def _expected(nodes: list[onnx.NodeProto]) -> list[np.ndarray] | None:
    try:
        session = onnxruntime.InferenceSession(model_of(nodes).SerializeToString())
        return list(session.run(None, {"x": X}))
    except Exception:
        return None  # it fits no operator's definition


@pytest.mark.slow
def test_every_operator_that_takes_one() -> None:
    nodes = []
    for node, at in forms():
        if (node.op_type, at) != ("Pad", 1) and _expected([node]) is not None:
            node.name = f"{node.op_type}_{at}"
            node.output[0] = node.name
            nodes.append(node)
    assert len(nodes) > 60
    expected = _expected(nodes)
    assert expected is not None
    found = compiled(model_of(nodes), {"x": X}, len(nodes))
    for node, actual, wanted in zip(nodes, found, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-6, err_msg=node.name)  # some are float32


def test_what_does_not_fit_is_refused_in_one_line() -> None:
    said = []
    for node, _ in forms():
        node.name = "look"
        try:
            relay.frontend.from_onnx(model_of([node]))
        except ModelError as error:
            said.append(str(error))
    assert len(said) > 20
    for message in said:
        assert "look" in message or "the model" in message
        assert "attribute" not in message


def test_widths_of_padding_are_needed_at_compile_time() -> None:
    (node,) = [node for node, at in forms() if (node.op_type, at) == ("Pad", 1)]
    with pytest.raises(ModelError, match=r"\(Pad\) can't be imported: Dynamic pads are not supported yet"):
        from_onnx(model_of([node]))


@pytest.mark.slow
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_of_as_many_as_the_data_tell(largest: int) -> None:
    """The smaller of 5 and how many numbers are above 0, as detectors have it, of those numbers and of rows."""
    constants = {"zero": np.float32(0), "one": np.int64(1), "five": np.int64([5]), "list": np.int64([-1])}
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["above"]),
        helper.make_node("NonZero", ["above"], ["places"]),
        helper.make_node("Shape", ["places"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["count"]),
        helper.make_node("Reshape", ["count", "list"], ["counts"]),
        helper.make_node("Min", ["counts", "five"], ["k"]),
        helper.make_node("Transpose", ["places"], ["rows"]),
        helper.make_node("GatherND", ["x", "rows"], ["numbers"]),
        helper.make_node("TopK", ["numbers", "k"], ["v", "i"], largest=largest),
        helper.make_node("TopK", ["x", "k"], ["w", "j"], axis=0, largest=largest),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, (7, 4))], [onnx.ValueInfoProto(name=n) for n in "viwj"],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for bias in (0.0, -1.5):  # more than 5 above 0, and fewer
        x = (np.random.default_rng(4).standard_normal((7, 4)) + bias).astype(np.float32)
        for found, wanted in zip(compiled(model, {"x": x}, 4), session.run(None, {"x": x}), strict=True):
            np.testing.assert_array_equal(found, wanted)
