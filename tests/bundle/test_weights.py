"""A bundle without weights holds none, wherever a model may have them; and its model still compiles."""

import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.bundle import IoConfig, Request
from tvm_neuron.bundle.archive import read_bundle, write_bundle
from tvm_neuron.bundle.weights import with_random_weights, without_weights
from tvm_neuron.codegen import function
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.hw import load_device

TEXT = b"SeCrEt+oF#a:UsEr"
SECRETS = {
    dtype: np.frombuffer(TEXT, dtype)[0]
    for dtype in (np.float32, np.float64, np.float16, np.int64, np.int32, np.int16, np.int8)
}
"""Of each dtype a number that is made of the text's bytes."""
REQUEST = Request(
    suffix=".neff", compress=False, inputs=(IoConfig(),), options=BuildOptions(), device=load_device("inf1")
)


def secret(dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """An array whose bytes are the text over and over."""
    count = int(np.prod(shape))
    return np.frombuffer(TEXT * (count * 8 // len(TEXT) + 1), dtype)[:count].reshape(shape)


class Maker:
    """Nodes that take a [4, 8] float32 value to another, by weights that lie in a place of the draw's choice."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw
        self.count = 0
        self.functions: list[onnx.FunctionProto] = []

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def weight(self, nodes: list[onnx.NodeProto], weights: list[TensorProto], shape: tuple[int, ...]) -> str:
        """The name of a float32 value that is made of secrets."""
        dtype = self.draw(st.sampled_from(list(SECRETS)))
        array, name = secret(dtype, shape), self.name()
        forms = ["initializer", "value", "fields"] if dtype == np.float32 else ["initializer", "value"]
        forms += ["sparse"] if dtype == np.float32 and shape else []
        forms += ["value_floats"] if dtype == np.float32 and len(shape) == 1 else []
        forms += ["value_float"] if dtype == np.float32 and not shape else []
        forms += ["value_ints"] if dtype == np.int64 and len(shape) == 1 else []
        form = self.draw(st.sampled_from(forms))
        if form == "initializer":
            weights.append(numpy_helper.from_array(array, name))
        elif form == "sparse":
            values = numpy_helper.from_array(array.reshape(-1), "sparse")
            places = numpy_helper.from_array(np.arange(array.size), "places")
            given = helper.make_attribute("sparse_value", helper.make_sparse_tensor(values, places, shape))
            nodes.append(helper.make_node("Constant", [], [name]))
            nodes[-1].attribute.append(given)
        elif form == "fields":
            held = helper.make_tensor("t", TensorProto.FLOAT, shape, array.reshape(-1).tolist())
            nodes.append(helper.make_node("Constant", [], [name], value=held))
        else:
            held = numpy_helper.from_array(array, "t") if form == "value" else array.tolist()
            nodes.append(helper.make_node("Constant", [], [name], **{form: held}))
        if dtype == np.float32:
            return name
        nodes.append(helper.make_node("Cast", [name], [self.name()], to=TensorProto.FLOAT))
        return str(nodes[-1].output[0])

    def chain(self, x: str, y: str, depth: int) -> tuple[list[onnx.NodeProto], list[TensorProto]]:
        """One to three steps from `x` to `y`."""
        nodes: list[onnx.NodeProto] = []
        weights: list[TensorProto] = []
        kinds = ["add", "product", "reshape", "gather", *(["if", "loop", "scan", "function"] if depth else [])]
        for _ in range(self.draw(st.integers(1, 3))):
            result = self.name()
            getattr(self, "_" + self.draw(st.sampled_from(kinds)))(nodes, weights, x, result, depth)
            x = result
        nodes.append(helper.make_node("Relu", [x], [y], doc_string=TEXT.decode()))
        return nodes, weights

    def _add(self, nodes: Any, weights: Any, x: str, y: str, _depth: int) -> None:
        shape = self.draw(st.sampled_from([(), (1,), (8,), (4, 8)]))
        nodes.append(helper.make_node("Add", [x, self.weight(nodes, weights, shape)], [y]))

    def _product(self, nodes: Any, weights: Any, x: str, y: str, _depth: int) -> None:
        nodes.append(helper.make_node("MatMul", [x, self.weight(nodes, weights, (8, 8))], [y]))

    def _reshape(self, nodes: Any, weights: Any, x: str, y: str, _depth: int) -> None:
        """By a shape that is computed from several constants, one of them the shape of a weight."""
        weight = self.weight(nodes, weights, (4, 8))
        names = [self.name() for _ in range(6)]
        weights.append(numpy_helper.from_array(np.array([8]), names[0]))
        nodes.append(helper.make_node("Constant", [], [names[1]], value_ints=[4]))
        nodes.append(helper.make_node("Concat", names[:2], [names[2]], axis=0))
        nodes.append(helper.make_node("Reshape", [x, names[2]], [names[3]]))
        nodes.append(helper.make_node("Shape", [weight], [names[4]]))
        nodes.append(helper.make_node("Reshape", [names[3], names[4]], [names[5]]))
        nodes.append(helper.make_node("Add", [names[5], weight], [y]))

    def _gather(self, nodes: Any, weights: Any, x: str, y: str, _depth: int) -> None:
        """Rows of a table at many constant positions, which are no weights but too many to stay."""
        table, places, rows, sums = self.weight(nodes, weights, (4, 8)), self.name(), self.name(), self.name()
        weights.append(numpy_helper.from_array(np.resize([3, 1, 2, 0], (25, 4)), places))
        nodes.append(helper.make_node("Gather", [table, places], [rows]))
        nodes.append(helper.make_node("ReduceSum", [rows], [sums], keepdims=0))
        nodes.append(helper.make_node("Add", [x, sums], [y]))

    def _body(self, inputs: list[str], x: str, more: list[str], depth: int, shape: tuple[int, ...]) -> onnx.GraphProto:
        """A graph of one or two outputs: those in `more`, and what becomes of `x`."""
        types = {"i": (TensorProto.INT64, []), "go": (TensorProto.BOOL, []), "row": (TensorProto.FLOAT, [8])}
        y = self.name()
        nodes, weights = self.chain(x, y, depth - 1)
        nodes += [helper.make_node("Identity", [name], [f"{name}_{y}"]) for name in more]
        infos = [helper.make_tensor_value_info(n, *types.get(n, (TensorProto.FLOAT, shape))) for n in inputs]
        outs = [helper.make_tensor_value_info(f"{n}_{y}", *types[n]) for n in more]
        first = [] if "row" in more else outs
        last = outs if "row" in more else []
        value = helper.make_tensor_value_info(y, TensorProto.FLOAT, shape)
        return helper.make_graph(nodes, "body", infos, [*first, value, *last], weights, doc_string=TEXT.decode())

    def _if(self, nodes: Any, weights: Any, x: str, y: str, depth: int) -> None:
        cond = self.name()
        weights.append(numpy_helper.from_array(np.array(self.draw(st.booleans())), cond))
        branches = {name: self._body([], x, [], depth, (4, 8)) for name in ("then_branch", "else_branch")}
        nodes.append(helper.make_node("If", [cond], [y], **branches))

    def _loop(self, nodes: Any, weights: Any, x: str, y: str, depth: int) -> None:
        trips, carried = self.name(), self.name()
        weights.append(numpy_helper.from_array(np.array(2), trips))
        body = self._body(["i", "go", carried], carried, ["go"], depth, (4, 8))
        nodes.append(helper.make_node("Loop", [trips, "", x], [y], body=body))

    def _scan(self, nodes: Any, weights: Any, x: str, y: str, depth: int) -> None:
        carried, rows = self.name(), self.name()
        body = self._body([carried, "row"], carried, ["row"], depth, (4, 8))
        nodes.append(helper.make_node("Scan", [x, self.weight(nodes, weights, (3, 8))], [y, rows], body=body,
                                      num_scan_inputs=1))  # fmt: skip

    def _function(self, nodes: Any, weights: Any, x: str, y: str, depth: int) -> None:
        name, inner, result, added = (self.name() for _ in range(4))
        body, held = self.chain(inner, result, depth - 1)
        body = [*(helper.make_node("Constant", [], [each.name], value=each) for each in held), *body]
        body.append(helper.make_node("Constant", [], [added]))
        body[-1].attribute.append(onnx.AttributeProto(name="value_floats", type=onnx.AttributeProto.FLOATS))
        body[-1].attribute[0].ref_attr_name = "bias"
        body.append(helper.make_node("Add", [result, added], [f"{result}_sum"]))
        imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
        self.functions.append(helper.make_function("own", name, [inner], [f"{result}_sum"], body, imports, ["bias"]))
        nodes.append(helper.make_node(name, [x], [y], domain="own", bias=secret(np.float32, (8,)).tolist()))


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    maker = Maker(draw)
    nodes, weights = maker.chain("x", "y", depth=2)
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy"]
    graph = helper.make_graph(nodes, "main", infos[:1], infos[1:], weights)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=imports, functions=maker.functions, ir_version=10)
    helper.set_model_props(model, {"weights": TEXT.decode()})
    model.training_info.add().algorithm.initializer.append(numpy_helper.from_array(secret(np.float32, (4,)), "t"))
    if draw(st.booleans()):
        values = numpy_helper.from_array(secret(np.float32, (4,)), "scattered")
        places = numpy_helper.from_array(np.arange(4), "places")
        model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [9]))
    return model


def varint(value: int) -> bytes:
    """As protobuf writes an integer."""
    value &= 2**64 - 1
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def holds_secrets(data: bytes) -> bool:
    """Four bytes of the text in a row, wherever it begins; or an integer of them."""
    doubled = TEXT * 2
    parts = {doubled[at : at + 4] for at in range(len(TEXT))}
    parts |= {varint(int(number)) for number in secret(np.int64, (2,))}
    return any(part in data for part in parts)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=models())
def test_no_weight_is_left_and_it_compiles(model: onnx.ModelProto) -> None:
    onnx.checker.check_model(model)
    relay.frontend.from_onnx(model)
    path = write_bundle(KeyError("a table"), REQUEST, model, False)
    with zipfile.ZipFile(path) as bundle:
        assert not holds_secrets(bundle.read("model.onnx"))
    assert holds_secrets(model.SerializeToString())
    _, again = read_bundle(str(path))
    path.unlink()
    onnx.checker.check_model(again)
    mod, params = relay.frontend.from_onnx(again)
    relay.build(mod, params=params)


def stripped(nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], given: tuple[str, ...] = ()) -> Any:
    """What is left of the initializers and of the constants, by name."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", *given)]
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    model = without_weights(helper.make_model(helper.make_graph(nodes, "g", infos, infos[:1], held)), given)
    tensors = {each.name: each for each in model.graph.initializer}
    tensors |= {n.output[0]: n.attribute[0].t for n in model.graph.node if n.op_type == "Constant"}
    return {
        name: numpy_helper.to_array(each).tolist() if "kept" in each.doc_string else each.doc_string.split()[0]
        for name, each in tensors.items()
    }


def test_what_stays_and_what_goes() -> None:
    node = helper.make_node
    ints = {name: np.array([1, 2]) for name in ("of_shape", "computed", "added", "at_run_time", "with_given", "large")}
    weights = ints | {"scales": np.ones(4, np.float32), "bias": np.ones(1, np.float32), "mask": np.ones(2, bool)}
    weights |= {"table": np.ones((9, 2), np.float32), "large": np.zeros(65, int), "zero": np.uint8([3])}
    nodes = [
        node("Reshape", ["x", "of_shape"], ["a"]),
        node("Neg", ["computed"], ["b"]),
        node("Reshape", ["x", "b"], ["c"]),
        node("Add", ["x", "added"], ["d"]),
        node("Add", ["x", "at_run_time"], ["e"]),  # with what is known at run time only
        node("Reshape", ["x", "e"], ["f"]),
        node("Add", ["axes", "with_given"], ["g"]),
        node("ReduceSum", ["x", "g"], ["h"]),
        node("Resize", ["x", "", "scales"], ["i"]),
        node("Where", ["mask", "x", "bias"], ["j"]),
        node("Gather", ["table", "large"], ["k"]),
        node("DequantizeLinear", ["x", "bias", "zero"], ["l"]),
        node("Constant", [], ["few"], value_ints=[1, 2]),
        node("Constant", [], ["one"], value_int=1),
        node("Mul", ["few", "one"], ["m"]),
    ]
    assert stripped(nodes, weights, ("axes",)) == {
        "of_shape": [1, 2], "computed": [1, 2], "with_given": [1, 2], "scales": [1, 1, 1, 1], "large": "positions",
    } | dict.fromkeys(("added", "at_run_time", "bias", "mask", "table", "zero", "few", "one"), "weights")  # fmt: skip


def test_positions_become_zeros_and_weights_random() -> None:
    table, places = np.ones((9, 2), np.float32), np.full(65, 3)
    infos = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [65, 2])]
    held = [numpy_helper.from_array(array, name) for name, array in (("table", table), ("places", places))]
    graph = helper.make_graph([helper.make_node("Gather", ["table", "places"], ["y"])], "g", [], infos, held)
    again = with_random_weights(without_weights(helper.make_model(graph), ()))
    found = {each.name: numpy_helper.to_array(each) for each in again.graph.initializer}
    assert not found["places"].any()
    assert (found["table"] > 0).all()
    assert len(np.unique(found["table"])) == 18


def test_attributes_of_other_operators_are_cut_short() -> None:
    tree = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", values=[2.5, 3.5], ids=list(range(70)), few=[4, 5],
        mode="SUM", engine="s" * 65, alpha=0.25, labels=["a", "s" * 65],
    )  # fmt: skip
    graph = helper.make_graph([tree], "g", [], [])
    (node,) = without_weights(helper.make_model(graph), ()).graph.node
    assert {each.name: helper.get_attribute_value(each) for each in node.attribute} == {
        "values": [1, 1], "ids": [0] * 70, "few": [4, 5], "mode": b"SUM", "engine": b"", "alpha": 0.25,
        "labels": [b"a", b""],
    }  # fmt: skip


def test_what_this_version_of_onnx_does_not_know_is_left_out() -> None:
    model = onnx.ModelProto()
    model.ParseFromString(b"\xfa\x7f\x10" + TEXT)  # field 2047: 16 bytes
    assert holds_secrets(model.SerializeToString())
    assert not holds_secrets(without_weights(model, ()).SerializeToString())


@pytest.mark.filterwarnings("ignore::tvm_neuron.errors.NeuronWarning")
@pytest.mark.parametrize("place", ["compile_function", "can_schedule"])
def test_nor_are_they_in_what_a_build_from_python_leaves(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> bytes:
        raise KeyError("a table")

    monkeypatch.setenv("NEURON_CC_BUNDLES", str(tmp_path))
    monkeypatch.setattr(function, place, fail)
    shapes: dict[str, tuple[int, ...]] = {"scale": (), "bias": (8,), "w": (8, 8)}
    weights = {name: secret(np.float32, shape) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["sum"]),
        helper.make_node("Mul", ["sum", "scale"], ["y"]),
    ]
    mod, params = relay.frontend.from_onnx(make_model(nodes, {"x": [4, 8]}, ["y"], weights))
    relay.build(mod, params=params)
    bundles = list(tmp_path.iterdir())
    assert bundles
    scale = float(weights["scale"])
    told = (repr(scale), f"{scale:.17g}", str(int(scale)), sha256(weights["scale"].tobytes()).hexdigest())
    for path in bundles:
        with zipfile.ZipFile(path) as bundle:
            data = b"".join(map(bundle.read, bundle.namelist()))
        assert not holds_secrets(data)
        assert not any(text.encode() in data for text in told)
