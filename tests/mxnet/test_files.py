"""A symbol and its weights as files: by every door, and what is said of those that are damaged or missing."""

import contextlib
import json
from pathlib import Path
from struct import pack

import numpy as np
import onnxruntime
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st

import tvm_neuron
from tests.mxnet.files import VARIABLE, params, symbol, write_network
from tvm_neuron import relay
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import mxnet
from tvm_neuron.frontend.mxnet.params import parse_params
from tvm_neuron.frontend.mxnet.symbol import parse_symbol

IMAGE = np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype("float32")
EXACT = tvm_neuron.BuildOptions(fp32_cast="none")


def network(image: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    """What `write_network` computes."""
    wide = np.pad(image.astype("float64"), [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    made = np.einsum("nchwij,kcij->nkhw", windows, weights["conv_weight"]) + weights["conv_bias"][:, None, None]
    scores = np.maximum(made, 0).mean((2, 3)) @ weights["fc_weight"].T + weights["fc_bias"]
    shares = np.exp(scores - scores.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True)


@pytest.mark.parametrize("name", ["net-symbol.json", "net-0000.params"])
@pytest.mark.parametrize("form", ["alone", "tuple", "named"])
def test_either_file_is_the_model(tmp_path: Path, name: str, form: str) -> None:
    weights = write_network(tmp_path)
    examples = {"alone": IMAGE, "tuple": (IMAGE,), "named": {"data": IMAGE}}[form]
    library = tvm_neuron.compile(tmp_path / name, examples, target="neuron/inf2", options=EXACT)
    executor = library["default"](tvm.cpu())
    executor.run(data=IMAGE)
    np.testing.assert_allclose(executor.get_output(0).numpy(), network(IMAGE, weights), rtol=1e-4)  # float32
    rows = tvm_neuron.report(library).placement
    assert {row.name for row in rows} >= {"conv", "fc"}


def test_the_signature_of_tvm_018(tmp_path: Path) -> None:
    weights = write_network(tmp_path)
    mod, bound = relay.frontend.from_mxnet(
        str(tmp_path / "net-symbol.json"),
        {"data": (2, 3, 32, 32)},
        "float32",
        {"conv_weight": weights["conv_weight"] + 1},
        {},
    )
    assert isinstance(mod, tvm.IRModule)
    np.testing.assert_array_equal(bound["conv_weight"].numpy(), weights["conv_weight"] + 1)  # not what the file has
    with pytest.raises(ModelError, match=r"takes a mxnet\.Symbol or the path .*got int; .*block\.export"):
        relay.frontend.from_mxnet(3)


def test_weights_that_mxnet_wrote_long_ago() -> None:
    """Without a number that says the version, sizes have 32 bits; kinds of numbers are the same."""
    values = np.arange(6, dtype="float16").reshape(2, 3)
    old = pack("<QQQ", 0x112, 0, 1) + pack("<III", 2, 2, 3) + pack("<iii", 1, 0, 2) + values.tobytes()
    found = parse_params(old + pack("<QQ", 1, 5) + b"aux:v", "it")
    np.testing.assert_array_equal(found["v"], values)
    assert found["v"].dtype == np.float16


@given(st.data())
def test_damaged_weights_are_an_error_or_weights(data: st.DataObject) -> None:
    whole = bytearray(params({"w": np.arange(6, dtype="float32").reshape(2, 3), "v": np.zeros(2, "int8")}))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    with contextlib.suppress(ModelError):  # and no other
        assert len(parse_params(cut, "it")) <= 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "ends, or is damaged, at byte 0 of 0"),
        (pack("<QQ", 7, 0), "does not begin with 0x112"),
        (params({"w": np.zeros(3, "float32")})[:-1], "ends, or is damaged, at byte"),
        (pack("<QQQIi", 0x112, 0, 1, 0xF993FAC9, 1), "holds a sparse array: store it dense"),
        (pack("<QQQI", 0x112, 0, 1, 99) + bytes(99), "an array of 99 dimensions"),
        (pack("<QQQIIIiii", 0x112, 0, 1, 1, 1, 0, 0, 77, 0), "dtype number 77"),
        (params({"w": np.zeros(3, "float32")})[: -len("w") - 16] + pack("<Q", 0), "has 1 arrays but 0 names"),
    ],
)
def test_weights_that_are_none(content: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        parse_params(content, "it")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no symbol of MXNet"),
        ('{"nodes": 3, "heads": []}', "is no symbol of MXNet"),
        ('{"nodes": [{"op": "null", "name": 1, "inputs": []}], "heads": [[0, 0]]}', "is no symbol of MXNet"),
        ('{"nodes": [{"op": "relu", "name": "r", "inputs": [[0, 0]]}], "heads": [[0, 0]]}', "'r' reads a node"),
        ('{"nodes": [{"op": "null", "name": "r", "inputs": []}], "heads": [[4, 0]]}', "heads are none of its 1 nodes"),
        ("[" * 100_000, "is no symbol of MXNet"),
    ],
)  # fmt: skip
def test_symbols_that_are_none(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        parse_symbol(text, "it")


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"net-symbol\.json' can't be read: No such file"):
        tvm_neuron.compile(tmp_path / "net-symbol.json")
    write_network(tmp_path)
    (tmp_path / "net-0007.params").write_bytes(b"")
    with pytest.raises(
        ModelError, match=r"several epochs: give the file of one .*\(net-0000.params, net-0007.params\)"
    ):
        tvm_neuron.compile(tmp_path / "net-symbol.json")
    with pytest.raises(ModelError, match=r"net-0007.params' ends, or is damaged"):
        tvm_neuron.compile(tmp_path / "net-0007.params")
    for path in tmp_path.glob("*.params"):
        path.unlink()
    with pytest.raises(ModelError, match=r"has no weights: put 'net-0000.params' beside it"):
        tvm_neuron.compile(tmp_path / "net-symbol.json")


@pytest.mark.parametrize(
    ("nodes", "shapes", "message"),
    [
        ([("Custom", "y", {}, ("x",))], {"x": (2, 3)}, r"'y' \(Custom\) has no converter to ONNX"),
        ([("relu", "y", {}, ("x",))], {}, "'x' has no weights, so it is an input, and inputs need a shape"),
        ([("relu", "y", {}, ("x",))], {"x": (2,), "z": (3,)}, "no input 'z'; its inputs are x"),
        ([("relu", "y", {}, ("x", "x"))], {"x": (2,)}, r"'y' \(relu\) can't be imported: it has 2 inputs"),
        ([("relu", "y", {"spin": 3}, ("x",))], {"x": (2,)}, "spin is not known of it"),
        ([("reshape", "y", {"shape": "(4, 9)"}, ("x",))], {"x": (2, 3)}, r"shape = \(4, 9\) of a tensor of"),
        ([("dot", "y", {}, ("x", "x"))], {"x": (2, 3)}, r"inputs of shapes \[2, 3\], \[2, 3\] don't fit"),
        ([("Activation", "y", {"act_type": "loud"}, ("x",))], {"x": (2,)}, "act_type = loud; known are relu,"),
        ([("sum", "y", {"axis": 5}, ("x",))], {"x": (2,)}, "axis 5 of a tensor of 1 dimensions"),
        ([("expand_dims", "y", {}, ("x",))], {"x": (2,)}, "it has no axis"),
        ([("slice", "y", {"begin": "open('f')", "end": 1}, ("x",))], {"x": (2,)}, "are no whole numbers"),
        ([("clip", "y", {"a_min": "low", "a_max": 1}, ("x",))], {"x": (2,)}, "a_min = low is no number"),
        ([("Cast", "y", {"dtype": "str"}, ("x",))], {"x": (2,)}, "dtype = str; known are float16"),
        ([("Dropout", "y", {"mode": "always"}, ("x",))], {"x": (2,)}, "mode = always; it may be training"),
        ([("split", "y", {"num_outputs": 2}, ("x",))], {"x": (2, 3)}, "3 elements in 2 equal parts"),
        ([("Dropout", "d", {}, ("x",)), ("relu", "y", {}, (("d", 1),))], {"x": (2,)},
         r"output 1 of operator 'd' \(Dropout\) is for training alone"),
    ],
)  # fmt: skip
def test_what_is_not_imported(nodes: list, shapes: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        mxnet.to_onnx(parse_symbol(symbol((VARIABLE, "x", {}, ()), *nodes), "it"), {}, shapes, {})


def test_example_inputs_are_arrays_of_inputs(tmp_path: Path) -> None:
    write_network(tmp_path)
    with pytest.raises(ModelError, match="2 example inputs of a symbol with 1: data"):
        tvm_neuron.compile(tmp_path / "net-symbol.json", (IMAGE, IMAGE))
    with pytest.raises(ModelError, match="example inputs of a model of MXNet are arrays"):
        tvm_neuron.compile(tmp_path / "net-symbol.json", (object(),))


def test_old_names_of_attributes_and_shapes_in_the_file() -> None:
    raw = json.loads(
        symbol((VARIABLE, "t1", {"__shape__": "(2, 3)"}, ()), ("_PlusScalar", "y", {"scalar": "2"}, ("t1",)))
    )
    for node in raw["nodes"]:  # as MXNet 0.8 had it
        node["param"] = node.pop("attrs")
        node["inputs"] = [read[:2] for read in node["inputs"]]
    model = mxnet.to_onnx(parse_symbol(json.dumps(raw), "it"), {}, {}, {}, "float16")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.arange(6, dtype="float16").reshape(2, 3)
    np.testing.assert_array_equal(session.run(None, {"t1": x})[0], x + 2)


@pytest.mark.parametrize(("narrow", "kind"), [(False, "float32"), (True, "float16")])
def test_mixed_precision_comes_to_one_dtype(narrow: bool, kind: str) -> None:
    """MXNet's own kernels lack float16 on this kind of machine, so it is not recorded."""
    nodes = symbol(
        (VARIABLE, "x", {}, ()), ("amp_cast", "half", {"dtype": "float16"}, ("x",)),
        ("amp_multicast", "both", {"num_outputs": 2, "cast_narrow": narrow}, ("x", "half")),
        heads=[("both", 0), ("both", 1)],
    )  # fmt: skip
    model = mxnet.to_onnx(parse_symbol(nodes, "it"), {}, {"x": (9,)}, {})
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(3).standard_normal(9).astype("float32")
    first, second = session.run(None, {"x": x})
    np.testing.assert_array_equal(first, x.astype(kind))
    np.testing.assert_array_equal(second, x.astype("float16").astype(kind))
    assert [each.name for each in session.get_outputs()] == ["both_output0", "both_output1"]
