"""read_model_file: an ONNX file, whose large weights stay in it until they are asked for.

`onnx.load` holds the whole file twice, and every weight that is taken from it is a third copy. Here the file is cut
along its protobuf fields: what remains without the large weights is parsed by onnx, the weights are read into place.
"""

import math
import mmap
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError
from onnx import helper

from tvm_neuron.errors import ModelError
from tvm_neuron.runtime.tensors import aligned_empty

Stored = Mapping[int, Callable[[], np.ndarray]]
"""Reads an initializer of the graph, by its place among them; for those that are not in the model itself."""

_TEXT_ERRORS = (json_format.ParseError, text_format.ParseError, onnx.parser.ParseError, RecursionError)
_SMALLEST_BYTES = 4096
_VARINT, _FIXED64, _COUNTED, _FIXED32 = 0, 1, 2, 5  # protobuf's kinds of fields; ONNX has no groups
_DTYPES = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE}


class _Field(NamedTuple):
    """A field's number, and where it and its value begin and both end."""

    number: int
    begin: int
    value: int
    end: int


def read_model_file(path: Path) -> tuple[onnx.ModelProto, Stored]:
    """The model, and what is not in it: the large weights.

    Raises google's DecodeError if it isn't an ONNX file, ModelError if it isn't one in the text that its suffix names;
    OSError, ValueError or onnx's ValidationError if it, or a file that holds tensors outside of it, can't be read.
    """
    if path.suffix != ".onnx" or not path.stat().st_size:  # another suffix may name a format of text, which onnx knows
        try:
            return onnx.load(path), {}
        except _TEXT_ERRORS as error:
            raise ModelError(f"{path}: not an ONNX file in the text that {path.suffix} names: {error}") from error
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        fields = list(_fields(data, 0, len(data)))
        graphs = [field for field in fields if field.number == onnx.ModelProto.GRAPH_FIELD_NUMBER]
        model = onnx.ModelProto()
        model.ParseFromString(_without(data, fields, onnx.ModelProto.GRAPH_FIELD_NUMBER))
        stored: dict[int, Callable[[], np.ndarray]] = {}
        for graph in graphs:  # there is one; of several, protobuf makes one
            _add_graph(model.graph, data, graph, path, stored)
    onnx.load_external_data_for_model(model, str(path.parent))
    return model, stored


def _add_graph(
    graph: onnx.GraphProto, data: mmap.mmap, whole: _Field, path: Path, stored: dict[int, Callable[[], np.ndarray]]
) -> None:
    fields = list(_fields(data, whole.value, whole.end))
    graph.MergeFromString(_without(data, fields, onnx.GraphProto.INITIALIZER_FIELD_NUMBER))
    for field in fields:
        if field.number != onnx.GraphProto.INITIALIZER_FIELD_NUMBER:
            continue
        number, tensor = len(graph.initializer), graph.initializer.add()
        parts = list(_fields(data, field.value, field.end))
        raw = [part for part in parts if part.number == onnx.TensorProto.RAW_DATA_FIELD_NUMBER]
        tensor.ParseFromString(_without(data, parts, onnx.TensorProto.RAW_DATA_FIELD_NUMBER))
        if len(raw) == 1 and _stays(tensor, raw[0]):
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
            stored[number] = partial(_read, path, raw[0].value, tuple(tensor.dims), dtype)
        else:
            tensor.MergeFromString(b"".join(data[part.begin : part.end] for part in raw))


def _stays(tensor: onnx.TensorProto, raw: _Field) -> bool:
    """Whether a weight of these bytes can stay in the file."""
    size = raw.end - raw.value
    if size < _SMALLEST_BYTES or tensor.data_type not in _DTYPES or min(tensor.dims, default=1) < 0:
        return False
    return math.prod(tensor.dims) * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize == size


def _read(path: Path, offset: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A weight.

    Raises:
        ModelError: the file is not the one that was read before.
    """
    array = aligned_empty(shape, dtype)
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        memory = array.reshape(-1).view(np.uint8).data
        while memory and (count := file.readinto(memory)):
            memory = memory[count:]
    if memory:
        raise ModelError(f"{path}: it became shorter while it was read")
    return array if sys.byteorder == "little" else array.byteswap()


def _without(data: mmap.mmap, fields: Iterable[_Field], number: int) -> bytes:
    """The fields with another number."""
    return b"".join(data[field.begin : field.end] for field in fields if field.number != number)


def _fields(data: mmap.mmap, begin: int, end: int) -> Iterator[_Field]:
    """The fields of the message that lies there.

    Raises:
        DecodeError: it is no message.
    """
    while begin < end:
        key, value = _varint(data, begin, end)
        kind = key & 7
        if kind == _COUNTED:
            size, value = _varint(data, value, end)
            stop = value + size
        elif kind == _VARINT:
            stop = _varint(data, value, end)[1]
        elif kind in (_FIXED32, _FIXED64):
            stop = value + (4 if kind == _FIXED32 else 8)
        else:
            raise DecodeError(f"a field of kind {kind}")
        if stop > end:
            raise DecodeError("a field is longer than its message")
        yield _Field(key >> 3, begin, value, stop)
        begin = stop


def _varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    """A number, seven bits a byte, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise DecodeError("a number has no end")
