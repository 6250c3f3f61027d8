"""Model files by their format: which importer reads them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tvm

from tvm_neuron import relay
from tvm_neuron.errors import OptionError

Imported = tuple[tvm.IRModule, Mapping[str, Any]]


def format_of(file: Path, asked: str | None) -> str:
    """The format that is asked for, or that the file's name tells.

    Raises OptionError: there is none of that name, or the file's name tells none.
    """
    chosen = asked or next((name for name, suffixes in _SUFFIXES.items() if file.suffix in suffixes), None)
    if chosen not in _SUFFIXES:
        what = f"model_format is '{asked}'" if asked else f"the name '{file.name}' tells no format"
        raise OptionError(f"{what}; give one of {', '.join(_SUFFIXES)}")
    return chosen


def read(file: Path, kind: str, shapes: Mapping[str, Any], kwargs: Mapping[str, Any]) -> Imported:
    """The module and weights of a model file.

    Raises ModelError: it is not what the format says.
    """
    return _READERS[kind](file, dict(shapes), dict(kwargs))


def _onnx(file: Path, shapes: dict[str, Any], kwargs: dict[str, Any]) -> Imported:
    return relay.frontend.from_onnx(file, shapes, **{"freeze_params": False} | kwargs)


def _tflite(file: Path, shapes: dict[str, Any], kwargs: dict[str, Any]) -> Imported:
    return relay.frontend.from_tflite(file.read_bytes(), shapes, **kwargs)


def _coreml(file: Path, shapes: dict[str, Any], kwargs: dict[str, Any]) -> Imported:
    return relay.frontend.from_coreml(file, shapes, **kwargs)


_READERS: dict[str, Callable[[Path, dict[str, Any], dict[str, Any]], Imported]] = {
    "onnx": _onnx, "tflite": _tflite, "coreml": _coreml
}  # fmt: skip
_SUFFIXES = {"onnx": (".onnx",), "tflite": (".tflite",), "coreml": (".mlmodel",), "tvmc": (".tar",)}
