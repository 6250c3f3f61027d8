"""--io-config: shapes and dtypes of a model's inputs, as JSON text or a file with it.

{"inputs": {"data": [[1, 3, 224, 224], "float32"]}, "outputs": ["prob"]}
"""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from tvm_neuron.errors import ModelError

_FORM = '{"inputs": {"<name>": [[<sizes>], "<dtype>"]}, "outputs": ["<name>"]}'


def read_io_config(text: str | None) -> tuple[dict[str, tuple[int, ...]] | None, dict[str, str]]:
    """Shapes (None: as in the model) and dtypes of the inputs, by name. Outputs are always those of the model.

    Raises:
        ModelError: no such file, or the text has another form.
    """
    if text is None:
        return None, {}
    try:
        raw = json.loads(text if text.lstrip().startswith("{") else _read(text))
        inputs = {name: (tuple(shape), dtype) for name, (shape, dtype) in raw["inputs"].items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(f"--io-config is not of the form {_FORM}") from error
    for name, (shape, dtype) in inputs.items():
        if not _is_shape(shape) or not isinstance(dtype, str):
            raise ModelError(f"--io-config: input '{name}' must be [[<sizes of at least 1>], \"<dtype>\"]")
    return {name: shape for name, (shape, _) in inputs.items()}, {name: dtype for name, (_, dtype) in inputs.items()}


def _is_shape(shape: tuple[Any, ...]) -> bool:
    return all(type(extent) is int and extent > 0 for extent in shape)


def _read(place: str) -> str:
    path = urlparse(place).path if place.startswith("file://") else place
    try:
        return Path(path).read_text()
    except OSError as error:
        raise ModelError(f"--io-config file '{path}' can't be read: {error.strerror}") from error
