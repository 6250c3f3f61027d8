"""A bundle is data: whatever one holds, replay refuses it in one line or compiles, and writes nothing."""

import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.onnx_models import make_model
from tvm_neuron.bundle import IoConfig, Request
from tvm_neuron.bundle.archive import write_bundle
from tvm_neuron.cli.main import main
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.tuning import Tuning
from tvm_neuron.errors import OptionError
from tvm_neuron.hw import load_device

REQUEST = Request(
    suffix=".neff",
    compress=True,
    inputs=(IoConfig(), IoConfig({"x": (4, 8)}, {"x": "float32"}, {"axes": [1]})),
    options=BuildOptions(on_cpu=("head/*",), fp32_cast_of={"a*": "none"}, time_budget_seconds=2.5),
    device=load_device("inf2"),
)
Members = dict[str, bytes]


def model() -> onnx.ModelProto:
    weights = {"w": np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)}
    return make_model([onnx.helper.make_node("Add", ["x", "w"], ["y"], "add")], {"x": [4, 8]}, ["y"], weights, opset=18)


@pytest.fixture
def members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Members:
    """What a sound bundle holds. The working directory is `tmp_path / "here"`."""
    for name in ("here", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("HOME", str(tmp_path))
    request = replace(REQUEST, compress=False, inputs=(IoConfig(),), options=BuildOptions())
    path = write_bundle(KeyError("a table"), request, model(), False)
    with zipfile.ZipFile(path) as bundle:
        found = {name: bundle.read(name) for name in bundle.namelist()}
    path.unlink()
    return found


def packed(members: Members, compression: int = zipfile.ZIP_STORED) -> bytes:
    held = BytesIO()
    with zipfile.ZipFile(held, "w", compression) as bundle:
        for name, data in members.items():
            bundle.writestr(name, data)
    return held.getvalue()


def replayed(data: bytes, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code, and what stderr says beside of progress; nothing is written or left behind."""
    path = Path("bundle.zip")
    path.write_bytes(data)
    before = everything(path.absolute().parents[1])
    code = main(["replay", str(path)])
    assert everything(path.absolute().parents[1]) == before
    lines = capsys.readouterr().err.splitlines()
    return code, "\n".join(line for line in lines if not line.startswith("replay: "))


def everything(folder: Path) -> list[tuple[str, bytes]]:
    """All that lies in a folder, but for what TVM and NumPy keep for themselves while the process runs."""
    files = [path for path in sorted(folder.rglob("*")) if "temporary" not in path.parts]
    left = [path for path in (folder / "temporary").iterdir() if path.name.startswith("neuron")]
    return [(str(path), path.read_bytes() if path.is_file() else b"") for path in [*files, *left]]


def test_a_request_comes_back() -> None:
    raw = json.loads(json.dumps(REQUEST.to_dict()))
    assert Request.from_dict(raw) == REQUEST.__class__(
        **{**vars(REQUEST), "options": replace(REQUEST.options, device=BuildOptions.device)}
    )


def test_a_sound_bundle_compiles(members: Members, capsys: pytest.CaptureFixture[str]) -> None:
    assert replayed(packed(members), capsys) == (0, "")


BAD_VALUES: list[Any] = [
    None, True, -1, 0, 2**70, 10**400, -0.5, float("nan"), float("inf"), "", "x", "\ud800\x1b[2J\n", "../../evil.neff",
    [], {}, [[]], {"value": 1}, {"value": [[1], [2, 3]]}, {"inputs": {"x": [["4"], 7]}},
    {"inputs": {"../x": [[4], "float32"]}}, ["--output", "../evil.so"], "/proc/self/mem", "compile",
]  # fmt: skip


def places(raw: Any) -> Iterator[tuple[Any, ...]]:
    """The paths to all values in a JSON value."""
    for key in raw if isinstance(raw, dict) else range(len(raw)) if isinstance(raw, list) else ():
        yield (key,)
        yield from ((key, *rest) for rest in places(raw[key]))


@st.composite
def requests(draw: st.DrawFn, raw: Any) -> Any:
    """A request in which something is replaced, missing or added; or another value altogether."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(BAD_VALUES))
    raw = json.loads(json.dumps(raw))
    chosen = draw(st.sampled_from([place for place in places(raw) if place[0] != "device"] + [("device", "name")] * 3))
    inner = raw
    for key in chosen[:-1]:
        inner = inner[key]
    change = draw(st.sampled_from(["replace", "replace", "replace", "remove", "add"]))
    if change == "replace":
        inner[chosen[-1]] = draw(st.sampled_from(BAD_VALUES))
    elif change == "remove":
        del inner[chosen[-1]]
    elif isinstance(inner, dict):
        inner[draw(st.sampled_from(["words", "output", "cache", "device", "logfile"]))] = "../evil"
    return raw


quick = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quick
@given(data=st.data())
def test_requests_of_any_form(data: st.DataObject, members: Members, capsys: pytest.CaptureFixture[str]) -> None:
    raw = data.draw(requests(json.loads(members["request.json"])))
    code, told = replayed(packed(members | {"request.json": json.dumps(raw).encode()}), capsys)
    assert code in (0, 1)
    assert code == (1 if told else 0)
    assert not told or (told.startswith("neuron-cc replay: error NCC") and "\n" not in told), told


def external(members: Members) -> Members:
    """With a tensor that lies in another file, in an attribute of a node in an inner graph."""
    tensor = onnx.TensorProto(name="w", dims=[32], data_type=onnx.TensorProto.FLOAT, data_location="EXTERNAL")
    tensor.external_data.add(key="location", value="../secret")
    node = onnx.helper.make_node("Constant", [], ["c"], value=tensor)
    graph = onnx.helper.make_graph([node], "inner", [], [])
    loaded = onnx.load_model_from_string(members["model.onnx"])
    loaded.graph.node.append(onnx.helper.make_node("If", ["x"], ["z"], then_branch=graph, else_branch=graph))
    return members | {"model.onnx": loaded.SerializeToString()}


def enormous(members: Members) -> Members:
    """With weights left out that no machine holds."""
    loaded = onnx.load_model_from_string(members["model.onnx"])
    loaded.graph.initializer[0].dims[:] = [1 << 40, 1 << 10]
    loaded.graph.initializer[0].ClearField("raw_data")
    loaded.graph.initializer[0].doc_string = "weights left out by neuron-cc"
    return members | {"model.onnx": loaded.SerializeToString()}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda members: b"", "File is not a zip file"),
        (lambda members: packed(members)[:-30], "File is not a zip file"),
        (lambda members: packed({"facts.json": b'{"words": ["run", "a.so"]}'}), "There is no item named 'request"),
        (lambda members: packed(members, zipfile.ZIP_DEFLATED), "request.json in it is compressed"),
        (lambda members: packed(members | {"request.json": b" " * (1 << 25)}), "takes 33554432 bytes, of at most 1677"),
        (lambda members: packed(members | {"request.json": b"{"}), "Expecting property name"),
        (lambda members: packed(members | {"request.json": b"[" * 10**5}), "maximum recursion depth"),
        (lambda members: packed(members | {"request.json": b"[]"}), "its request must be an object with the keys"),
        (lambda members: packed(members | {"model.onnx": b"\xff"}), "Error parsing message"),
        (lambda members: packed(members | {"model.onnx": b""}), "its model has no graph"),
        (lambda members: packed(external(members)), "its model refers to other files"),
        (lambda members: packed(enormous(members)), "the weights left out of it take "),
    ],
)  # fmt: skip
def test_what_is_no_bundle(
    damage: Callable[[Members], bytes], message: str, members: Members, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = replayed(damage(members), capsys)
    assert code == 1
    assert told.startswith("neuron-cc replay: error NCC100: 'bundle.zip' is no bundle of neuron-cc: ")
    assert message in told
    assert "\n" not in told


def test_other_members_are_never_unpacked(members: Members, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("../evil", str(tmp_path / "evil"), "files/../../evil", "C:\\evil", "model.onnx/evil", "evil.so")
    link = zipfile.ZipInfo("device.json")
    link.external_attr = 0o120777 << 16
    held = BytesIO(packed(members | dict.fromkeys(names, b"evil")))
    with zipfile.ZipFile(held, "a") as bundle:
        bundle.writestr(link, str(tmp_path / "evil"))
    assert replayed(held.getvalue(), capsys) == (0, "")


@quick
@given(data=st.data())
def test_damaged_bytes(data: st.DataObject, members: Members, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the archive's own structure: its checksums find what is changed within a member."""
    content = bytearray(packed(members))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(-400, -1))] = data.draw(st.integers(0, 255))
    code, told = replayed(bytes(content), capsys)
    assert code in (0, 1)
    assert code == (1 if told else 0)
    assert not told or (told.startswith("neuron-cc replay: error NCC100: ") and "\n" not in told), told


@settings(quick, derandomize=True)  # what a compile finds out about models that nobody would write is another matter
@given(data=st.data())
def test_damaged_models(data: st.DataObject, members: Members, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(members["model.onnx"])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    code, told = replayed(packed(members | {"model.onnx": bytes(content)}), capsys)
    assert code in (0, 1)
    assert code == (1 if told else 0)
    assert not told or told.startswith("neuron-cc replay: error NCC"), told
    assert "Traceback" not in told


def test_a_name_that_is_no_text(members: Members, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = members["model.onnx"].replace(b"\x03add", b"\x03\xffdd")
    code, told = replayed(packed(members | {"model.onnx": damaged}), capsys)
    message = "neuron-cc replay: error NCC100: the model is damaged: the name of a NodeProto is not UTF-8"
    assert (code, told) == (1, message)


def test_a_share_of_no_memory() -> None:
    with pytest.raises(OptionError, match=r"Tuning\(weights_share=0, strip_share=5\): both must be at least 1"):
        Tuning(weights_share=0)
