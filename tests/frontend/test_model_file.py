"""Models as they lie in files: weights that are read from there, and files that are none."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

from tests.onnx_models import make_model
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend import from_onnx
from tvm_neuron.frontend.onnx.model_file import read_model_file
from tvm_neuron.runtime.tensors import aligned_empty, shared

RNG = np.random.default_rng(0)
LARGE = RNG.standard_normal((80, 50)).astype("float32")
SMALL = RNG.standard_normal((4, 5)).astype("float32")

TEXTS = [".txtpb", ".textproto", ".prototxt", ".pbtxt", ".json", ".onnxjson", ".onnxtxt", ".onnxtext"]


def model_with(*tensors: onnx.TensorProto) -> onnx.ModelProto:
    """A model that adds the tensors to its input, one after the other."""
    names = ["x", *(f"sum{number}" for number, _ in enumerate(tensors))]
    nodes = [
        helper.make_node("Add", [names[number], tensor.name], [names[number + 1]])
        for number, tensor in enumerate(tensors)
    ]
    model = make_model(nodes, {"x": list(tensors[0].dims)}, [names[-1]])
    model.graph.initializer.extend(tensors)
    return model


def read(model: onnx.ModelProto, folder: Path) -> tuple[onnx.ModelProto, dict[int, np.ndarray]]:
    """What the file of a model holds, and its stored weights."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    found, stored = read_model_file(path)
    return found, {number: load() for number, load in stored.items()}


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16])
def test_large_weights_stay_in_the_file(tmp_path: Path, dtype: int) -> None:
    values = LARGE.astype(helper.tensor_dtype_to_np_dtype(dtype))
    large, small = numpy_helper.from_array(values, "large"), numpy_helper.from_array(SMALL[:1, :1], "small")
    model = model_with(large, small)
    found, stored = read(model, tmp_path)
    assert list(stored) == [0]
    assert stored[0].dtype == values.dtype
    np.testing.assert_array_equal(stored[0], values)
    assert stored[0].ctypes.data % 64 == 0
    assert found.graph.initializer[1] == small
    assert not found.graph.initializer[0].raw_data
    found.graph.initializer[0].raw_data = large.raw_data
    assert found == model


@pytest.mark.parametrize(
    "tensor",
    [
        numpy_helper.from_array(SMALL, "small"),
        numpy_helper.from_array(np.arange(5000), "integers"),
        helper.make_tensor("values", TensorProto.FLOAT, [80, 50], LARGE.reshape(-1).tolist()),
        TensorProto(name="too_short", data_type=TensorProto.FLOAT, dims=[80, 50], raw_data=LARGE[:30].tobytes()),
    ],
    ids=lambda tensor: tensor.name,
)
def test_other_tensors_are_part_of_the_model(tmp_path: Path, tensor: onnx.TensorProto) -> None:
    model = model_with(tensor)
    assert read(model, tmp_path) == (model, {})


def test_a_model_in_two_parts_is_one(tmp_path: Path) -> None:
    """Protobuf joins messages that are written one after the other."""
    one, two = numpy_helper.from_array(LARGE, "one"), numpy_helper.from_array(2 * LARGE, "two")
    model, rest = model_with(one), onnx.ModelProto(graph=onnx.GraphProto(initializer=[two]))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString() + rest.SerializeToString())
    found, stored = read_model_file(path)
    assert [proto.name for proto in found.graph.initializer] == ["one", "two"]
    np.testing.assert_array_equal(stored[0](), LARGE)
    np.testing.assert_array_equal(stored[1](), 2 * LARGE)


def test_text_is_read_by_onnx(tmp_path: Path) -> None:
    model = model_with(numpy_helper.from_array(LARGE, "large"))
    onnx.save(model, tmp_path / "model.textproto")
    assert read_model_file(tmp_path / "model.textproto")[0].graph.initializer[0].name == "large"


def test_tensors_in_other_files(tmp_path: Path) -> None:
    model = model_with(numpy_helper.from_array(LARGE, "large"))
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, size_threshold=0, location="weights")
    found, stored = read_model_file(tmp_path / "model.onnx")
    assert not stored
    np.testing.assert_array_equal(numpy_helper.to_array(found.graph.initializer[0]), LARGE)


def test_files_of_another_kind(tmp_path: Path) -> None:
    data = model_with(numpy_helper.from_array(LARGE, "large")).SerializeToString()
    path = tmp_path / "model.onnx"
    for wrong in (data[:-100], data[:40], b"\x0b" + data, b"\x88" * 20, b"\x09abc", bytes(RNG.bytes(200))):
        path.write_bytes(wrong)
        with pytest.raises(DecodeError):
            read_model_file(path)
        with pytest.raises(ModelError, match="not an ONNX file"):
            from_onnx(path)


@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
@pytest.mark.parametrize("suffix", TEXTS)
def test_texts_of_another_kind(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    for wrong in ('{"x": ', "[" * 100_000, "\0", "graph {"):
        path.write_text(wrong)
        with pytest.raises(ModelError, match="not an ONNX file in the text that"):
            from_onnx(path)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model_with(numpy_helper.from_array(LARGE, "large")).SerializeToString())
    _, stored = read_model_file(path)
    path.write_bytes(b"short")
    with pytest.raises(ModelError, match="it became shorter while it was read"):
        stored[0]()


def test_weights_are_those_of_the_model_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model_with(numpy_helper.from_array(LARGE, "large")).SerializeToString())
    for model in (path, onnx.load(path)):
        np.testing.assert_array_equal(from_onnx(model)[1]["large"].numpy(), LARGE)


def test_tensors_share_the_memory_of_aligned_arrays() -> None:
    array = aligned_empty((3, 5), np.dtype("float32"))
    array[...] = 1
    tensor = shared(array)
    array[2, 4] = 7
    assert tensor.numpy()[2, 4] == 7
    moved = aligned_empty((16,), np.dtype("float32"))[1:]
    moved[...] = 1
    tensor = shared(moved)
    moved[0] = 7
    assert tensor.numpy()[0] == 1
