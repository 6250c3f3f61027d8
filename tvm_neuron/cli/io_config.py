"""--io-config: shapes, dtypes and values of a model's inputs, as JSON text or a file with it.

{"inputs": {"data": [[1, 3, 224, 224], "float32"], "axes": {"value": [1]}}, "outputs": ["prob"]}
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from tvm_neuron.errors import ModelError

_FORM = '{"inputs": {"<name>": [[<sizes>], "<dtype>"], "<name>": {"value": <numbers>}}, "outputs": ["<name>"]}'


@dataclass(frozen=True)
class IoConfig:
    """What is said of the inputs, by name; outputs are always those of the model."""

    shapes: dict[str, tuple[int, ...]] | None = None  # None: as in the model
    dtypes: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)  # of inputs that shapes depend on


def read_io_config(text: str | None) -> IoConfig:
    """The text, or the file that it names, as values.

    Raises:
        ModelError: no such file, or the text has another form.
    """
    if text is None:
        return IoConfig()
    try:
        raw = json.loads(text if text.lstrip().startswith("{") else _read(text))
        given = dict(raw["inputs"].items())
        values = {name: entry["value"] for name, entry in given.items() if isinstance(entry, dict)}
        tensors = {name: (tuple(entry[0]), entry[1]) for name, entry in given.items() if name not in values}
        malformed = [name for name, entry in given.items() if name not in values and len(entry) != 2]
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise ModelError(f"--io-config is not of the form {_FORM}") from error
    if malformed:
        raise ModelError(f"--io-config is not of the form {_FORM}")
    for name, (shape, dtype) in tensors.items():
        if not _is_shape(shape) or not isinstance(dtype, str):
            raise ModelError(f"--io-config: input '{name}' must be [[<sizes of at least 1>], \"<dtype>\"]")
    shapes = {name: shape for name, (shape, _) in tensors.items()}
    return IoConfig(shapes, {name: dtype for name, (_, dtype) in tensors.items()}, values)


def _is_shape(shape: tuple[Any, ...]) -> bool:
    return all(type(extent) is int and extent > 0 for extent in shape)


def _read(place: str) -> str:
    path = urlparse(place).path if place.startswith("file://") else place
    try:
        return Path(path).read_text()
    except OSError as error:
        raise ModelError(f"--io-config file '{path}' can't be read: {error.strerror}") from error
