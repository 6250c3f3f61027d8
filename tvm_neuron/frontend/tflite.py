"""from_tflite: TFLite files by TVM's own importer, which is right on float and on quantised networks."""

import struct
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import tvm

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.packages import needed

_MAGIC = slice(4, 8), b"TFL3"


def read_bytes(path: Path) -> bytes:
    """What is in a file, to be given to `from_tflite`.

    Raises ModelError: it can't be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"'{path}' can't be read: {error.strerror}") from error


def from_tflite(
    model: Any, shape_dict: Mapping[str, Sequence[int]] | None = None, dtype_dict: Mapping[str, str] | None = None,
    op_converter: type | None = None,
) -> tuple[tvm.IRModule, dict[str, tvm.runtime.Tensor]]:  # fmt: skip
    """The module of a TFLite model, a `tflite.Model` or the bytes of a file; no weights, which are its constants.

    The arguments are those of TVM 0.18. `shape_dict` and `dtype_dict` say what the inputs are, where it is not what the
    file says; `op_converter` is a class derived from that of TVM, tvm.relax.frontend.tflite.tflite_frontend's
    OperatorConverter, which converts in place of ours.

    Raises ModelError: the package tflite is missing, it is no TFLite model, or an operator of it is unknown.
    """
    tflite = needed("tflite", "from_tflite")
    place, magic = _MAGIC
    if isinstance(model, bytes | bytearray | memoryview):
        if bytes(model[place]) != magic:
            raise ModelError(f"from_tflite: these {len(model)} bytes are no TFLite file")
        model = tflite.Model.GetRootAsModel(bytes(model), 0)
    elif not isinstance(model, tflite.Model):
        raise ModelError(f"from_tflite takes a tflite.Model or the bytes of a file, got {type(model).__name__}")
    theirs = needed("tvm.relax.frontend.tflite", "from_tflite")
    shapes = {name: tuple(shape) for name, shape in (shape_dict or {}).items()}
    try:
        sizes = import_module("tvm_neuron.frontend.tflite_sizes")  # which imports tflite
        converter = op_converter or sizes.KnownSizes
        mod = theirs.from_tflite(model, shapes or None, dict(dtype_dict or {}) or None, converter)
    except (NotImplementedError, AssertionError, ValueError, RuntimeError, KeyError, TypeError, IndexError) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelError(f"from_tflite: {reason}") from error
    except struct.error as error:
        raise ModelError(f"from_tflite: the file is damaged or not whole: {error}") from error
    mod["main"] = mod["main"].without_attr("params")  # they are in the module
    return mod, {}
