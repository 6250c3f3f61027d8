"""HLO protos, as XLA dumps them (`--xla_dump_hlo_as_proto`): told by their fields, not parsed here.

jaxlib turns them into StableHLO. An HloModuleProto has its computations as field 3 and the entry's number as field 6;
an HloProto has a module as field 1.
"""

from importlib import import_module

from tvm_neuron.errors import ModelError, from_extra
from tvm_neuron.frontend.cause import cause

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def hlo_module(content: bytes) -> bytes | None:
    """The HloModuleProto in these bytes, or None if they are something else, such as a GraphDef of TensorFlow."""
    fields = _fields(content)
    if _is_module(fields):
        return content
    inner = next((value for number, value in fields or () if number == 1 and isinstance(value, bytes)), b"")
    return inner if _is_module(_fields(inner)) else None


def to_stablehlo(module: bytes, where: str) -> bytes:
    """MLIR's bytes of an HloModuleProto.

    Raises:
        OptionError: jaxlib is not installed.
        ModelError: jaxlib can't read it.
    """
    with from_extra("jax", "a model in HLO"):
        of_jaxlib = import_module("jaxlib._jax")
    try:
        found: bytes = of_jaxlib.mlir.hlo_to_stablehlo(module)
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"{where} is HLO that jaxlib can't read: {cause(error)}") from error
    return found


def _is_module(fields: list[tuple[int, bytes | int]] | None) -> bool:
    kinds = {(number, type(value)) for number, value in fields or ()}
    return {(3, bytes), (6, int)} <= kinds


def _fields(content: bytes) -> list[tuple[int, bytes | int]] | None:
    """Number and value of each field of a message of protobuf; None if it is none."""
    found: list[tuple[int, bytes | int]] = []
    place = 0
    try:
        while place < len(content):
            key, place = _varint(content, place)
            number, kind = key >> 3, key & 7
            if kind == _VARINT:
                value, place = _varint(content, place)
                found.append((number, value))
                continue
            size = {_FIXED64: 8, _FIXED32: 4}.get(kind, 0)
            if kind == _BYTES:
                size, place = _varint(content, place)
            if not number or (size == 0 and kind != _BYTES) or place + size > len(content):
                return None
            found.append((number, content[place : place + size]))
            place += size
    except IndexError:
        return None
    return found


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while content[place] & 0x80:
        value |= (content[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return value | content[place] << shift, place + 1
