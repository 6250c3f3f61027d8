"""Writing a library: an object file with its NEFFs, linked to its code."""

import ctypes
import pickle
import platform
import struct
from pathlib import Path

import numpy as np
import pytest
import tvm
from onnx import helper
from tvm.support.cc import create_shared

from tests.onnx_models import make_model, mixed_model, reference
from tvm_neuron import relay, runtime
from tvm_neuron.errors import InternalError, NeffError, NeuronError
from tvm_neuron.relay import pack
from tvm_neuron.relay.object_file import write_object

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="other systems' libraries are TVM's own")
THIS = Path("/proc/self/exe")
X = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype("float32")


@pytest.mark.parametrize("size", [0, 1, 64, 1000])
def test_a_symbol_holds_the_pieces(tmp_path: Path, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    write_object(tmp_path / "a.o", "some_data", [data[:7], memoryview(data)[7:], b"end"], THIS)
    create_shared(str(tmp_path / "a.so"), [str(tmp_path / "a.o")])
    library = ctypes.CDLL(str(tmp_path / "a.so"))
    found = (ctypes.c_char * (size + 3)).in_dll(library, "some_data")
    assert found.raw == data + b"end"
    assert ctypes.addressof(found) % 64 == 0


def test_the_stack_stays_not_executable(tmp_path: Path) -> None:
    write_object(tmp_path / "a.o", "some_data", [b"x"], THIS)
    create_shared(str(tmp_path / "a.so"), [str(tmp_path / "a.o")])
    data = (tmp_path / "a.so").read_bytes()
    at, size, count = struct.unpack_from("<Q", data, 32) + struct.unpack_from("<HH", data, 54)
    flags = dict(struct.unpack_from("<II", data, at + number * size) for number in range(count))
    assert flags[0x6474E551] & 1 == 0  # PT_GNU_STACK without PF_X


def test_a_machine_of_32_bits_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lib0.o").write_bytes(b"\x7fELF\x01\x01\x01" + bytes(57))
    with pytest.raises(NeuronError, match=r"little-endian machine of 64 bits, '.*lib0.o' for another: write a .neff"):
        write_object(tmp_path / "a.o", "some_data", [b"x"], tmp_path / "lib0.o")


def test_the_library_runs_before_and_after_it_was_written(tmp_path: Path) -> None:
    model = mixed_model()
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, params=params)
    kept = runtime.neffs(library)
    assert len(kept) == 2
    library.export_library(tmp_path / "a.so")
    loaded = tvm.runtime.load_module(str(tmp_path / "a.so"))
    assert runtime.neffs(loaded) == runtime.neffs(library) == kept
    assert runtime.manifest(loaded) == runtime.manifest(library)
    for one in (library, loaded):
        executor = relay.graph_executor.GraphModule(one["default"](tvm.cpu()))
        executor.run(x=X)
        for number, expected in enumerate(reference(model, {"x": X})):
            np.testing.assert_allclose(executor.get_output(number).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_the_file_is_there_after_the_block_and_only_if_it_succeeds(tmp_path: Path) -> None:
    mod, params = relay.frontend.from_onnx(make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [4, 8]}, ["y"]))
    library = relay.build(mod, params=params)
    with library.exporting(tmp_path / "a.so"):
        assert not (tmp_path / "a.so").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a.so"]
    with pytest.raises(ZeroDivisionError), library.exporting(tmp_path / "b.so"):
        raise ZeroDivisionError
    with pytest.raises(NeffError, match=r"b\.so' can't be linked: .*no-such-option"):
        library.export_library(tmp_path / "b.so", options=["--no-such-option"])
    assert [path.name for path in tmp_path.iterdir()] == ["a.so"]


def test_the_neffs_are_not_read_by_an_assembler(tmp_path: Path) -> None:
    mod, params = relay.frontend.from_onnx(mixed_model())
    commands: list[list[str]] = []

    def link(output: str, objects: list[str]) -> None:
        commands.append([Path(name).name for name in objects])
        create_shared(output, objects)

    relay.build(mod, params=params).export_library(tmp_path / "a.so", fcompile=link)
    assert commands == [["lib0.o", "imports.o"]]


def test_another_layout_of_tvm_is_found_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mod, params = relay.frontend.from_onnx(mixed_model())
    library = relay.build(mod, params=params)
    kept = runtime.neffs(library)
    monkeypatch.setattr(pack, "_saved", lambda _entries: [b"in another way"])
    with pytest.raises(InternalError, match="lays out the modules of a library in a way that is unknown here"):
        library.export_library(tmp_path / "a.so")
    assert runtime.neffs(library) == kept
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"PATH": "/nowhere"}, r"a\.so' can't be linked: no C\+\+ compiler is on the PATH; install one"),
        ({"CXX": "/nowhere/g++"}, r"a\.so' can't be linked: /nowhere/g\+\+: No such file or directory$"),
        ({"CXX": "{folder}/full"}, r"a\.so' can't be linked: No space left on device$"),
    ],
)
def test_what_hinders_the_linker_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], expected: str
) -> None:
    (tmp_path / "full").write_text("#!/bin/sh\necho No space left on device\nexit 1\n")
    (tmp_path / "full").chmod(0o755)
    mod, params = relay.frontend.from_onnx(mixed_model())
    library = relay.build(mod, params=params)
    for name in ("CXX", "CC"):
        monkeypatch.delenv(name, raising=False)
    for name, value in changes.items():
        monkeypatch.setenv(name, value.format(folder=tmp_path))
    with pytest.raises(NeffError, match=expected):
        library.export_library(tmp_path / "a.so")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_a_library_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    mod, params = relay.frontend.from_onnx(mixed_model())
    library = relay.build(mod, params=params)
    with pytest.raises(NeffError, match=r"none/a\.so' can't be written: No such file or directory"):
        library.export_library(tmp_path / "none" / "a.so")


def test_a_pickled_library() -> None:
    """TVM's own way of pickling a module ends the process."""
    model = mixed_model()
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, params=params)
    content = pickle.dumps(library)
    again = pickle.loads(content)
    assert runtime.neffs(again) == runtime.neffs(library)
    assert (again.target.export(), again.libmod_name) == (library.target.export(), library.libmod_name)
    executor = again["default"](tvm.cpu())
    executor.run(x=X)
    for number, wanted in enumerate(reference(model, {"x": X})):
        np.testing.assert_allclose(executor.get_output(number).numpy(), wanted, rtol=1e-5, atol=1e-5)
    damaged = content.replace(b"\x7fELF", b"\x7fELG", 1)
    with pytest.raises(NeffError, match="the packed library is damaged"):
        pickle.loads(damaged)
