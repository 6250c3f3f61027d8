"""model_files: the files that a model consists of: its own, and those that hold tensors outside of it."""

import mmap
from os.path import isfile  # which also knows that a name may be too long, unlike that of `Path`
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx.external_data_helper import ExternalDataInfo, _get_all_tensors, uses_external_data

_KEY = b"location"  # under which a tensor names the file that holds it; text in a model lies there as it is


def model_files(path: Path) -> list[Path]:
    """`path` and what its tensors name; just `path` if it is no model. Only models that name any are parsed."""
    if not isfile(path) or not path.stat().st_size:
        return [path]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content.find(_KEY) < 0:
            return [path]
    try:
        model = onnx.load(path, load_external_data=False)
    except DecodeError:
        return [path]
    names = {ExternalDataInfo(tensor).location for tensor in _get_all_tensors(model) if uses_external_data(tensor)}
    return [path, *(path.parent / name for name in sorted(names))]
