"""The bytes of the tables: tensors, origins, and what is kept as JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tvm_neuron.errors import NeffError
from tvm_neuron.isa.codec import Reader, Writer
from tvm_neuron.isa.dtypes import CODES
from tvm_neuron.neff.neff import Placement, TensorInfo
from tvm_neuron.program import DramTensor, Origin
from tvm_neuron.program.form import TENSOR_KINDS

_MAX_ENTRIES = 1 << 20
_MAX_DIMS = 32
_MAX_TENSOR_BYTES = 1 << 48


def encode_tensors(tensors: tuple[DramTensor, ...]) -> bytes:
    """Of each tensor: name, kind, dtype, shape."""
    out = Writer()
    out.uint(len(tensors))
    for tensor in tensors:
        out.text(tensor.name)
        out.uint(TENSOR_KINDS.index(tensor.kind))
        out.uint(CODES.index(tensor.dtype))
        out.uint(len(tensor.shape))
        for extent in tensor.shape:
            out.uint(extent)
    return out.bytes()


def decode_tensors(data: bytes) -> tuple[DramTensor, ...]:
    """The inverse of `encode_tensors`.

    Raises:
        NeffError: a count, code or size is too large, or data are left over.
    """
    reader = Reader(data)
    tensors = []
    for _ in range(reader.count(_MAX_ENTRIES, "tensors")):
        name = reader.text()
        kind = TENSOR_KINDS[reader.count(len(TENSOR_KINDS) - 1, "as tensor kind")]
        dtype = CODES[reader.count(len(CODES) - 1, "as dtype")]
        shape = tuple(
            reader.count(_MAX_TENSOR_BYTES, "elements in a row") for _ in range(reader.count(_MAX_DIMS, "dimensions"))
        )
        tensor = DramTensor(name, kind, shape, dtype)
        if tensor.size_bytes > _MAX_TENSOR_BYTES:
            raise NeffError(f"tensor '{name}' of shape {list(shape)} is larger than {_MAX_TENSOR_BYTES} bytes")
        tensors.append(tensor)
    _need_done(reader)
    return tuple(tensors)


def encode_origins(origins: tuple[Origin, ...]) -> bytes:
    """Of each model operator: name, type."""
    out = Writer()
    out.uint(len(origins))
    for origin in origins:
        out.text(origin.name)
        out.text(origin.op)
    return out.bytes()


def decode_origins(data: bytes) -> tuple[Origin, ...]:
    """The inverse of `encode_origins`.

    Raises:
        NeffError: too many, or data are left over.
    """
    reader = Reader(data)
    origins = tuple(Origin(reader.text(), reader.text()) for _ in range(reader.count(_MAX_ENTRIES, "origins")))
    _need_done(reader)
    return origins


def _need_done(reader: Reader) -> None:
    if not reader.is_done:
        raise NeffError(f"the table ends at byte {reader.position} of {len(reader.data)}")


def encode_json(value: Any) -> bytes:
    """JSON in one spelling, so that equal values are equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def decode_json(data: memoryview, section: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        NeffError: it isn't one.
    """
    try:
        value = json.loads(bytes(data))
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate in a text can't be printed
    except (ValueError, RecursionError) as error:
        raise NeffError(f"NEFF section '{section}' is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise NeffError(f"NEFF section '{section}' is not a JSON object")
    return value


def infos_to_json(infos: tuple[TensorInfo, ...]) -> list[dict[str, Any]]:
    """Name, shape and dtype of each."""
    return [{"name": info.name, "shape": list(info.shape), "dtype": info.dtype} for info in infos]


def infos_from_json(rows: Any) -> tuple[TensorInfo, ...]:
    """The inverse of `infos_to_json`.

    Raises:
        NeffError: a row has another form.
    """
    for row in _rows(rows, {"name", "shape", "dtype"}, "model"):
        shape = row["shape"]
        whole = isinstance(shape, list) and all(type(extent) is int for extent in shape)
        if not whole or not _all_texts(row, "name", "dtype"):
            raise NeffError("NEFF section 'model' describes a tensor in an unknown way")
    return tuple(TensorInfo(row["name"], tuple(row["shape"]), row["dtype"]) for row in rows)


def placement_to_json(placement: tuple[Placement, ...]) -> list[dict[str, str]]:
    """One row for each operator."""
    return [asdict(row) for row in placement]


def placement_from_json(rows: Any) -> tuple[Placement, ...]:
    """The inverse of `placement_to_json`.

    Raises:
        NeffError: a row has another form.
    """
    fields = ("name", "op", "where", "reason")
    if not all(_all_texts(row, *fields) for row in _rows(rows, set(fields), "placement")):
        raise NeffError("NEFF section 'placement' describes an operator in an unknown way")
    return tuple(Placement(**row) for row in rows)


def _rows(rows: Any, keys: set[str], section: str) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) and set(row) == keys for row in rows):
        raise NeffError(f"NEFF section '{section}' must be a list of rows with the keys {', '.join(sorted(keys))}")
    return rows


def _all_texts(row: Mapping[str, Any], *keys: str) -> bool:
    return all(isinstance(row[key], str) for key in keys)
