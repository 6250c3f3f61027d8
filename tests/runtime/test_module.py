"""The runtime module: holds bytes, hands out functions, survives being written and read."""

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi

from tvm_neuron.errors import InputError, NeuronError
from tvm_neuron.runtime import make_module, manifest, neffs, program
from tvm_neuron.runtime.library import entry, entry_names
from tvm_neuron.runtime.tensors import as_numpy

ENTRIES = {"neuron_0": b"\x00first", "neuron_10": b"", "neuron_2": bytes(range(256)), "__manifest__": b'{"a": 1}'}
LAYOUT = b"".join(
    len(key).to_bytes(8, "little") + len(value).to_bytes(8, "little") + key.encode() + value
    for key, value in ENTRIES.items()
)


def loaded(data: bytes) -> tvm.runtime.Module:
    return tvm_ffi.get_global_func("ffi.Module.load_from_bytes.neuron")(data)


def test_entries_come_back() -> None:
    assert make_module(ENTRIES).kind == "neuron"
    for module in (make_module(ENTRIES), loaded(LAYOUT)):
        assert {name: entry(module, name) for name in entry_names(module)} == ENTRIES


@pytest.mark.parametrize("size", [1, 15, 16, 20, len(LAYOUT) - 1])
def test_truncated_bytes_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="neuron module is truncated"):
        loaded(LAYOUT[:size])


def test_a_length_beyond_the_end_is_refused() -> None:
    with pytest.raises(ValueError, match="neuron module is truncated"):
        loaded(b"\xff" * 8 + b"\x10" + bytes(7) + b"key")


def test_manifest_and_neffs() -> None:
    module = make_module(ENTRIES)
    assert manifest(module) == {"a": 1}
    assert list(neffs(module)) == ["neuron_0", "neuron_2", "neuron_10"]
    assert module.inspect_source() == '{"a": 1}'


def test_a_library_of_someone_else_has_no_manifest() -> None:
    with pytest.raises(NeuronError, match="holds no Neuron manifest"):
        manifest(make_module({}))
    with pytest.raises(NeuronError, match="expected a compiled library, got int"):
        manifest(3)


def test_functions_are_the_programs() -> None:
    module = make_module(ENTRIES)
    assert module.implements_function("neuron_0")
    assert not module.implements_function("__manifest__")
    assert not module.implements_function("neuron_1")


def test_a_program_is_read_once_and_writes_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    info = SimpleNamespace
    shape = (2, 3)
    reads = []

    def read(data: bytes) -> SimpleNamespace:
        reads.append(data)
        return info(
            inputs=(info(name="a", shape=shape, dtype="float32"),),
            outputs=(info(name="b", shape=shape, dtype="float32"),),
        )

    class Doubler:
        def __init__(self, _pipeline: object) -> None:
            self.inputs = {"a": info(name="a", shape=shape, dtype="bfloat16")}

        def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            assert inputs["a"].dtype == ml_dtypes.bfloat16
            return {"b": inputs["a"].astype("float32") * 2}

    monkeypatch.setattr(program, "shared", SimpleNamespace(read=read))
    monkeypatch.setattr(program, "sim", SimpleNamespace(Cores=Doubler))
    function = make_module({"p": b"neff"})["p"]
    a, b = tvm.runtime.tensor(np.full(shape, 1.5, "float32")), tvm.runtime.empty(shape, "float32")
    for _ in range(2):
        function(a, b)
    np.testing.assert_array_equal(b.numpy(), np.full(shape, 3.0))
    assert reads == [b"neff"]
    with pytest.raises(InputError, match="program 'p' takes 2 tensors; got 1"):
        function(a)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "bool"])
def test_tensors_are_views(dtype: str) -> None:
    tensor = tvm.runtime.empty((3,), dtype)
    array = as_numpy(tensor)
    array[...] = 1
    assert array.dtype.name == dtype
    np.testing.assert_array_equal(tensor.numpy().astype("float32"), np.ones(3))
