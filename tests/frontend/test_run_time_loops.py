"""Loops whose end only a run tells agree with onnxruntime, round for round, and say why they run on the CPU."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper

import tvm_neuron
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import from_onnx
from tvm_neuron.frontend.onnx.needs import NeedsValueError

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
EXACT = tvm_neuron.BuildOptions(fp32_cast="none")
TOLERANCE = 1e-5
"""Relative, of tens of rounds in float32 that shrink their errors as they shrink their values."""


def value(name: str, elem_type: int, shape: list[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, elem_type, shape)


def node(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, name=outputs[0], **attributes)


def model_of(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, list[int]]], outputs: dict[str, tuple[int, list[int]]],
    **weights: Any,
) -> onnx.ModelProto:  # fmt: skip
    graph = helper.make_graph(
        nodes, "g",
        [value(name, *kind) for name, kind in inputs.items()],
        [value(name, *kind) for name, kind in outputs.items()],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def agrees(model: onnx.ModelProto, **inputs: Any) -> Any:
    library = tvm_neuron.compile(model, target="neuron/inf2", options=EXACT)
    executor = library["default"](tvm.cpu())
    executor.run(**inputs)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for number, wanted in enumerate(session.run(None, inputs)):
        found = executor.get_output(number).numpy()
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE * np.abs(wanted).max(initial=0))
    return library


def shrinking(trips: str = "", condition: str = "yes") -> onnx.ModelProto:
    """x := tanh(x w) until it is small; what runs before and after is the core's."""
    body = helper.make_graph(
        [
            node("MatMul", ["h", "w"], ["m"]),
            node("Tanh", ["m"], ["h2"]),
            node("ReduceL2", ["h2"], ["norm"], keepdims=0),
            node("Greater", ["norm", "limit"], ["goes_on"]),
            node("Add", ["count", "one"], ["count2"]),
        ],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("h", FLOAT, [4, 8]), value("count", INT64, [])],
        [value("goes_on", BOOL, []), value("h2", FLOAT, [4, 8]), value("count2", INT64, [])],
    )
    nodes = [
        node("Relu", ["x"], ["r"]),
        helper.make_node("Loop", [trips, condition, "r", "zero"], ["out", "rounds"], name="loop", body=body),
        node("Exp", ["out"], ["y"]),
    ]
    inputs = {"x": (FLOAT, [4, 8])}
    inputs |= {trips: (INT64, [])} if trips else {}
    inputs |= {condition: (BOOL, [])} if condition not in ("", "yes") else {}
    w = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32) * 0.3
    known = {"limit": np.float32(1e-3), "one": np.int64(1), "zero": np.int64(0), "yes": np.array(True), "w": w}
    return model_of(nodes, inputs, {"y": (FLOAT, [4, 8]), "rounds": (INT64, [])}, **known)


X = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)


def test_until_a_condition_fails() -> None:
    library = agrees(shrinking(), x=X)
    rows = {row.name: (row.where, row.reason) for row in tvm_neuron.report(library).placement}
    assert rows["r"] == rows["y"] == ("neuroncore", "")
    assert rows["loop"] == ("cpu", "its end depends on data, so it runs as a loop")
    inside = "it is in the loop 'loop', which runs on the CPU: its end depends on data, so it runs as a loop"
    assert rows["loop/m"] == rows["loop/count2"] == ("cpu", inside)
    assert list(rows) == ["r", "loop", *(f"loop/{name}" for name in ("m", "h2", "norm", "goes_on", "count2")), "y"]


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7, 40, -1])
def test_a_number_of_rounds_that_is_an_input(trips: int) -> None:
    agrees(shrinking("trips", ""), x=X, trips=np.array(trips))
    agrees(shrinking("trips"), x=X, trips=np.array(trips))


@pytest.mark.parametrize("begins", [True, False])
def test_a_condition_that_is_an_input(begins: bool) -> None:
    agrees(shrinking("", "begins"), x=X, begins=np.array(begins))


def counting(rounds: int) -> onnx.ModelProto:
    body = helper.make_graph(
        [node("Mul", ["h", "factor"], ["m"]), node("Cast", ["i"], ["f"], to=FLOAT), node("Add", ["m", "f"], ["h2"]),
         node("Identity", ["c"], ["c2"])],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("h", FLOAT, [3])],
        [value("c2", BOOL, []), value("h2", FLOAT, [3])],
    )  # fmt: skip
    loop = helper.make_node("Loop", ["trips", "", "x"], ["y"], name="loop", body=body)
    known = {"trips": np.int64(rounds), "factor": np.float32(0.5)}
    return model_of([loop], {"x": (FLOAT, [3])}, {"y": (FLOAT, [3])}, **known)


def test_many_rounds() -> None:
    """More than the stack of a function that calls itself would hold."""
    with pytest.warns(tvm_neuron.errors.PlacementWarning, match="nothing of the model runs on the NeuronCore"):
        library = agrees(counting(100_000), x=np.ones(3, np.float32))
    (loop, *_) = tvm_neuron.report(library).placement
    assert loop.reason == "it has more than 4096 rounds of 4 operators, too many to write out, so it runs as a loop"


def test_a_loop_in_a_loop() -> None:
    """Which reads a tensor of the model, and a state and a tensor of the loop around it."""
    inner = helper.make_graph(
        [node("Mul", ["a", "half"], ["a1"]), node("Add", ["a1", "scaled"], ["a2"]), node("Add", ["a2", "r"], ["a3"]),
         node("ReduceSum", ["a3"], ["s"], keepdims=0), node("Greater", ["s", "limit"], ["on"])],
        "inner",
        [value("j", INT64, []), value("c1", BOOL, []), value("a", FLOAT, [3])],
        [value("on", BOOL, []), value("a3", FLOAT, [3])],
    )  # fmt: skip
    outer = helper.make_graph(
        [node("Mul", ["b", "small"], ["scaled"]),
         helper.make_node("Loop", ["", "c0", "b"], ["found"], name="within", body=inner),
         node("Sub", ["found", "small"], ["b2"]), node("ReduceMax", ["b2"], ["top"], keepdims=0),
         node("Greater", ["top", "low"], ["again"])],
        "outer",
        [value("i", INT64, []), value("c0", BOOL, []), value("b", FLOAT, [3])],
        [value("again", BOOL, []), value("b2", FLOAT, [3])],
    )  # fmt: skip
    nodes = [node("Mul", ["x", "tiny"], ["r"]), helper.make_node("Loop", ["", "yes", "x"], ["y"], name="l", body=outer)]
    known = {"half": 0.5, "limit": 3.0, "small": 0.01, "low": 0.6, "tiny": 0.001}
    model = model_of(
        nodes, {"x": (FLOAT, [3])}, {"y": (FLOAT, [3])}, yes=np.array(True),
        **{name: np.float32(number) for name, number in known.items()},
    )  # fmt: skip
    library = agrees(model, x=np.float32([9, 5, 7]))
    names = [row.name for row in tvm_neuron.report(library).placement]
    assert {"l", "l/within", "l/within/a1", "l/b2"} <= set(names)
    assert len(set(names)) == len(names)


def test_states_of_other_dtypes() -> None:
    body = helper.make_graph(
        [node("Not", ["flag"], ["flag2"]), node("Add", ["n", "k"], ["n2"]),
         node("ReduceMax", ["n2"], ["top"], keepdims=0), node("Less", ["top", "most"], ["on"])],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("flag", BOOL, [2]), value("n", TensorProto.INT32, [5])],
        [value("on", BOOL, []), value("flag2", BOOL, [2]), value("n2", TensorProto.INT32, [5])],
    )  # fmt: skip
    loop = helper.make_node("Loop", ["", "yes", "p", "x"], ["q", "y"], name="loop", body=body)
    model = model_of(
        [loop], {"p": (BOOL, [2]), "x": (TensorProto.INT32, [5])}, {"q": (BOOL, [2]), "y": (TensorProto.INT32, [5])},
        k=np.arange(5, dtype=np.int32), most=np.int32(50), yes=np.array(True),
    )  # fmt: skip
    with pytest.warns(tvm_neuron.errors.PlacementWarning):
        agrees(model, p=np.array([True, False]), x=np.int32([3, 1, 4, 1, 5]))


def refused(body: onnx.GraphProto, inputs: dict[str, tuple[int, list[int]]], results: list[str]) -> onnx.ModelProto:
    loop = helper.make_node("Loop", ["", "yes", "x"], results, name="loop", body=body)
    return model_of([loop], inputs, {name: (FLOAT, [3, 4]) for name in results}, yes=np.array(True))


@pytest.mark.parametrize("shape", [[3, 4], [3]])
def test_collected_results_are_refused(shape: list[int]) -> None:
    body = helper.make_graph(
        [node("Neg", ["h"], ["h2"]), node("ReduceMax", ["h"], ["top"], keepdims=0),
         node("Cast", ["top"], ["on"], to=BOOL), node("Abs", ["h"], ["s"])],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("h", FLOAT, shape)],
        [value("on", BOOL, []), value("h2", FLOAT, shape), value("s", FLOAT, shape)],
    )  # fmt: skip
    model = refused(body, {"x": (FLOAT, shape)}, ["y", "z"])
    if len(shape) == 2:
        with pytest.raises(ModelError, match=r"'loop' \(Loop\) can't be imported: it collects 1 results of its rounds"):
            from_onnx(model)
    else:  # so little that its value can be given
        with pytest.raises(NeedsValueError, match=r"'loop' \(Loop\) needs the value of 'on' at compile time"):
            from_onnx(model)


def test_states_that_grow_are_refused() -> None:
    body = helper.make_graph(
        [node("Concat", ["h", "h"], ["h2"], axis=0), node("ReduceMax", ["h"], ["top"], keepdims=0),
         node("Cast", ["top"], ["on"], to=BOOL)],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("h", FLOAT, [3, 4])],
        [value("on", BOOL, []), value("h2", FLOAT, [6, 4])],
    )  # fmt: skip
    with pytest.raises(ModelError, match=r"its state 0 is .*\(3, 4\).* before a round and .*\(6, 4\).* after it"):
        from_onnx(refused(body, {"x": (FLOAT, [3, 4])}, ["y"]))


def test_sequences_are_refused() -> None:
    body = helper.make_graph(
        [node("SequenceAt", ["s", "i"], ["a"]), node("Add", ["h", "a"], ["h2"]),
         node("ReduceMax", ["h2"], ["top"], keepdims=0), node("Cast", ["top"], ["on"], to=BOOL)],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("h", FLOAT, [3, 4])],
        [value("on", BOOL, []), value("h2", FLOAT, [3, 4])],
    )  # fmt: skip
    loop = helper.make_node("Loop", ["", "yes", "x"], ["y"], name="loop", body=body)
    nodes = [node("SequenceConstruct", ["x", "x"], ["s"]), loop]
    model = model_of(nodes, {"x": (FLOAT, [3, 4])}, {"y": (FLOAT, [3, 4])}, yes=np.array(True))
    with pytest.raises(ModelError, match="'s', which it reads, is no tensor of a shape"):
        from_onnx(model)
