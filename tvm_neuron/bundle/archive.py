"""write_bundle and read_bundle: one file with all that it takes to see an internal error again.

It is a zip file of `traceback.txt` and `facts.json`, for people, and of `request.json` and `model.onnx`, which is all
that is read back. Nothing in it is compressed, so that reading takes no more memory than the file is large.
"""

import json
import struct
import sys
import traceback
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from tvm_neuron import neff
from tvm_neuron.bundle.request import Request
from tvm_neuron.bundle.weights import with_random_weights, without_weights
from tvm_neuron.codegen.bundle import facts
from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.messages import messages

_REQUEST, _MODEL = "request.json", "model.onnx"
_LARGEST_REQUEST_BYTES = 1 << 24  # as Python's values it takes some twenty times as much
_DAMAGED = (OSError, zipfile.BadZipFile, ValueError, LookupError, EOFError, RuntimeError, struct.error, DecodeError)


def write_bundle(error: BaseException, request: Request, model: onnx.ModelProto, with_weights: bool) -> Path:
    """Write `neuron-cc-bundle-N.zip` into the working directory and give its path.

    Raises:
        NeffError: it can't be written there.
    """
    given = [name for each in request.inputs for name in each.values]
    held = BytesIO()
    with zipfile.ZipFile(held, "w") as bundle:
        bundle.writestr("traceback.txt", "".join(traceback.format_exception(error)))
        bundle.writestr("facts.json", facts())
        bundle.writestr(_REQUEST, json.dumps(request.to_dict(), indent=2))
        bundle.writestr(_MODEL, (model if with_weights else without_weights(model, given)).SerializeToString())
    number = next(n for n in range(1, sys.maxsize) if not Path(f"neuron-cc-bundle-{n}.zip").exists())
    path = Path(f"neuron-cc-bundle-{number}.zip")
    neff.write_aside(path, [held.getvalue()])
    return path


def read_bundle(path: str) -> tuple[Request, onnx.ModelProto]:
    """What was asked for, and the model, with seeded random numbers where its weights were left out.

    Both are data: they name no other file, and nothing is written.

    Raises:
        ModelError: it is no bundle, or a damaged one.
    """
    try:
        with zipfile.ZipFile(path) as bundle:
            raw = _json(_member(bundle, _REQUEST, _LARGEST_REQUEST_BYTES))
            model = onnx.load_model_from_string(_member(bundle, _MODEL))
        if any(isinstance(each, onnx.TensorProto) and each.external_data for each in messages(model)):
            raise ValueError("its model refers to other files")
        if not model.HasField("graph"):
            raise ValueError("its model has no graph")
        return Request.from_dict(raw), with_random_weights(model)
    except (*_DAMAGED, RecursionError) as error:
        reason = "".join(c if c.isprintable() else "?" for c in str(error).strip())
        raise ModelError(f"'{path}' is no bundle of neuron-cc: {reason or type(error).__name__}") from error


def _member(bundle: zipfile.ZipFile, name: str, most_bytes: int = sys.maxsize) -> bytes:
    info = bundle.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} in it is compressed")
    if info.file_size > most_bytes:
        raise ValueError(f"{name} in it takes {info.file_size} bytes, of at most {most_bytes}")
    return bundle.read(info)


def _json(data: bytes) -> Any:
    raw = json.loads(data)
    json.dumps(raw, ensure_ascii=False).encode()  # a lone surrogate in a text can't be printed or written
    return raw
