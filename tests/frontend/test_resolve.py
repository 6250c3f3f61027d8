"""What is known at compile time is resolved at import: shape arithmetic, loops, branches, sequences, recurrences."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

from tests.onnx_models import make_model
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import from_onnx, normalize
from tvm_neuron.frontend.onnx.needs import NeedsValueError
from tvm_neuron.frontend.origin import OPERATORS_ATTR, Origin

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node, value = helper.make_node, helper.make_tensor_value_info


def model_of(nodes: list[Any], inputs: dict[str, Any], outputs: list[str], **constants: Any) -> onnx.ModelProto:
    """Inputs are float32 of the given shapes; constants become initializers."""
    graph = helper.make_graph(
        nodes, "g", [value(name, FLOAT, shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def run_on_cpu(mod: tvm.IRModule, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The imported module compiled for the CPU alone, in float32."""
    machine = relax.VirtualMachine(tvm.compile(normalize(mod), target="llvm"), tvm.cpu())
    results = machine["main"](*[tvm.runtime.tensor(array) for array in inputs])
    return [each.numpy() for each in ([results] if isinstance(results, tvm.runtime.Tensor) else results)]


def agrees(model: onnx.ModelProto, seed: int = 0) -> tvm.IRModule:
    """Asserts that the imported module computes what onnxruntime does (float32, sums of a few hundred terms)."""
    rng = np.random.default_rng(seed)
    names = [each.name for each in model.graph.input]
    shapes = [[dim.dim_value for dim in each.type.tensor_type.shape.dim] for each in model.graph.input]
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    outputs = onnxruntime.InferenceSession(model.SerializeToString()).run(None, dict(zip(names, inputs, strict=True)))
    mod, _ = from_onnx(model)
    for actual, expected in zip(run_on_cpu(mod, inputs), outputs, strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    return mod


def operators(mod: tvm.IRModule) -> list[Origin]:
    return [found for text in mod["main"].attrs[OPERATORS_ATTR] if (found := Origin.decode(str(text)))]


def relax_operators(mod: tvm.IRModule) -> list[str]:
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    return [b.value.op.name for b in bindings if isinstance(b.value, relax.Call)]


def test_shape_arithmetic_leaves_nothing() -> None:
    """As torch's TorchScript exporter splits heads: the target of a Reshape is computed from the shape."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["batch"], axis=0),
        node("Unsqueeze", ["batch", "axes"], ["b1"]),
        node("Gather", ["s", "two"], ["width"], axis=0),
        node("Div", ["width", "four"], ["head"]),
        node("Unsqueeze", ["head", "axes"], ["h1"]),
        node("Concat", ["b1", "minus", "fours", "h1"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["r"]),
        node("Transpose", ["r"], ["y"], perm=[0, 2, 1, 3]),
    ]
    numbers = {"zero": 0, "two": 2, "four": 4, "axes": [0], "minus": [-1], "fours": [4]}
    constants = {name: np.array(number, np.int64) for name, number in numbers.items()}
    mod = agrees(model_of(nodes, {"x": [2, 5, 12]}, ["y"], **constants))
    assert relax_operators(mod) == ["relax.reshape", "relax.permute_dims"]
    assert len(operators(mod)) == len(nodes)


def test_a_mask_from_shapes_is_a_constant() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("ConstantOfShape", ["s"], ["zeros"], value=helper.make_tensor("v", INT64, [1], [3])),
        node("Cast", ["zeros"], ["mask"], to=FLOAT),
        node("Add", ["x", "mask"], ["y"]),
    ]
    assert relax_operators(agrees(model_of(nodes, {"x": [3, 4]}, ["y"]))) == ["relax.add"]


def test_a_loop_of_known_length_is_unrolled() -> None:
    body = helper.make_graph(
        [node("Mul", ["h", "x"], ["next"], name="mul"), node("Identity", ["go"], ["still"])], "body",
        [value("i", INT64, []), value("go", BOOL, []), value("h", FLOAT, [2, 3])],
        [value("still", BOOL, []), value("next", FLOAT, [2, 3]), value("next", FLOAT, [2, 3])],
    )  # fmt: skip
    nodes = [node("Loop", ["trips", "", "x"], ["last", "all"], name="loop", body=body)]
    mod = agrees(model_of(nodes, {"x": [2, 3]}, ["last", "all"], trips=np.array(3, np.int64)))
    assert [str(origin) for origin in operators(mod) if origin.op == "Mul"] == [
        "loop.0/mul (Mul)", "loop.1/mul (Mul)", "loop.2/mul (Mul)",
    ]  # fmt: skip


def test_a_scan_is_unrolled() -> None:
    body = helper.make_graph(
        [node("Add", ["h", "x"], ["sum"]), node("Identity", ["sum"], ["out"])], "body",
        [value("h", FLOAT, [3]), value("x", FLOAT, [3])], [value("sum", FLOAT, [3]), value("out", FLOAT, [3])],
    )  # fmt: skip
    for backwards in (0, 1):
        attributes = {"scan_input_directions": [backwards], "scan_output_directions": [1 - backwards]}
        nodes = [node("Scan", ["h", "x"], ["last", "all"], body=body, num_scan_inputs=1, **attributes)]
        agrees(model_of(nodes, {"h": [3], "x": [4, 3]}, ["last", "all"]))


def test_a_known_branch_is_taken_and_an_unknown_one_selected() -> None:
    def branch(op: str) -> onnx.GraphProto:
        return helper.make_graph([node(op, ["x"], [op])], op, [], [value(op, FLOAT, [4])])

    sides = {"then_branch": branch("Relu"), "else_branch": branch("Neg")}
    known = agrees(model_of([node("If", ["c"], ["y"], **sides)], {"x": [4]}, ["y"], c=np.array(False)))
    assert relax_operators(known) == ["relax.negative"]
    nodes = [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Cast", ["s"], ["c"], to=BOOL)]
    unknown = agrees(model_of([*nodes, node("If", ["c"], ["y"], **sides)], {"x": [4]}, ["y"]))
    assert "relax.where" in relax_operators(unknown)


def test_sequences_are_resolved() -> None:
    nodes = [
        node("SplitToSequence", ["x", "two"], ["parts"], axis=0),
        node("SequenceInsert", ["parts", "x", "zero"], ["more"]),
        node("SequenceErase", ["more", "minus"], ["less"]),
        node("SequenceLength", ["less"], ["length"]),
        node("Cast", ["length"], ["count"], to=FLOAT),
        node("ConcatFromSequence", ["less"], ["joined"], axis=0),
        node("Mul", ["joined", "count"], ["y"]),
    ]
    numbers = {"two": 2, "zero": 0, "minus": -1}
    agrees(model_of(nodes, {"x": [5, 3]}, ["y"], **{name: np.array(n, np.int64) for name, n in numbers.items()}))


def test_a_body_of_the_standard_keeps_the_operators_name() -> None:
    nodes = [node("MeanVarianceNormalization", ["x"], ["y"], name="mvn")]
    mod = agrees(model_of(nodes, {"x": [2, 3, 4, 4]}, ["y"]))
    assert operators(mod) == [Origin("mvn", "MeanVarianceNormalization")]
    assert len(relax_operators(mod)) > 3


@pytest.mark.slow
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize(("direction", "extra"), [("forward", "plain"), ("reverse", "all"), ("bidirectional", "all")])
def test_recurrent_networks(op: str, direction: str, extra: str) -> None:
    """Length 4, batch 2, 3 features, 5 hidden; `all` adds biases, initial states, lengths (also 0) and attributes."""
    gates, ways = {"RNN": 1, "GRU": 3, "LSTM": 4}[op], 2 if direction == "bidirectional" else 1
    rng = np.random.default_rng(gates)

    def array(*shape: int) -> np.ndarray:
        return rng.uniform(-0.5, 0.5, shape).astype(np.float32)

    constants = {"w": array(ways, gates * 5, 3), "r": array(ways, gates * 5, 5)}
    names, attributes = ["x", "w", "r"], {}
    if extra == "all":
        lengths = np.int32([4, 0 if direction == "reverse" else 2])
        constants |= {"b": array(ways, 2 * gates * 5), "l": lengths, "h": array(ways, 2, 5)}
        names += ["b", "l", "h"]
        attributes = {"clip": 0.3}
        if op == "GRU":
            attributes["linear_before_reset"] = 1
        if op == "LSTM":
            constants |= {"c": array(ways, 2, 5), "p": array(ways, 15)}
            names += ["c", "p"]
    outputs = ["y", "y_h"] + (["y_c"] if op == "LSTM" else [])
    nodes = [node(op, names, outputs, hidden_size=5, direction=direction, **attributes)]
    mod = agrees(model_of(nodes, {"x": [4, 2, 3]}, outputs, **constants))
    assert [origin.op for origin in operators(mod)] == [op]


def test_an_input_that_shapes_depend_on_needs_a_value() -> None:
    model = make_model([node("Reshape", ["x", "target"], ["y"], name="flat")], {"x": [2, 6]}, ["y"])
    model.graph.input.append(value("target", INT64, [2]))
    with pytest.raises(NeedsValueError, match=r"'flat' \(Reshape\) needs the value of 'target'.*values=.'target'"):
        from_onnx(model)
    mod, _ = from_onnx(model, values={"target": [4, 3]})
    assert [var.name for var in mod["main"].params] == ["x"]
    assert list(mod["main"].ret_ty.shape) == [4, 3]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"other": 1}, "a value is given for 'other', but the model's inputs are: x, target"),
        ({"target": [1.5, 2.0]}, "the value given for 'target' has dtype float64; the model wants int64"),
        ({"target": [4]}, r"the value given for 'target' has shape \[1\]; the model wants \[2\]"),
    ],
)
def test_a_wrong_value_is_refused(values: dict[str, Any], message: str) -> None:
    model = make_model([node("Reshape", ["x", "target"], ["y"])], {"x": [2, 6]}, ["y"])
    model.graph.input.append(value("target", INT64, [2]))
    with pytest.raises(ModelError, match=message):
        from_onnx(model, values=values)
