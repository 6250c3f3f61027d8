"""--io-config: shapes, dtypes and values of a model's inputs, as JSON text or a file with it."""

import json
from pathlib import Path
from urllib.parse import urlparse

from tvm_neuron.bundle import IoConfig
from tvm_neuron.errors import ModelError


def read_io_config(text: str | None) -> IoConfig:
    """The text, or the file that it names, as values.

    Raises:
        ModelError: no such file, or the text has another form.
    """
    if text is None:
        return IoConfig()
    try:
        return IoConfig.from_json(json.loads(text if text.lstrip().startswith("{") else _read(text)))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"--io-config: {error}") from error


def _read(place: str) -> str:
    path = urlparse(place).path if place.startswith("file://") else place
    try:
        return Path(path).read_text()
    except OSError as error:
        raise ModelError(f"--io-config file '{path}' can't be read: {error.strerror}") from error
