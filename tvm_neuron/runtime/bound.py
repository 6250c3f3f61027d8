"""Weights that a library was compiled with, known by their digests: scripts set them again as if they were inputs."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
import tvm

from tvm_neuron.errors import InputError
from tvm_neuron.runtime.tensors import as_numpy

BOUND_ENTRY = "__bound__"
"""Entry that holds the digests as JSON."""


def encoded(params: Mapping[str, tvm.runtime.Tensor]) -> bytes:
    """The entry for weights by name."""
    return json.dumps({name: digest(value) for name, value in params.items()}).encode()


def digest(value: Any) -> str:
    """The same for tensors and arrays of one dtype, shape and content."""
    array = as_numpy(value) if isinstance(value, tvm.runtime.Tensor) else np.asarray(value)
    found = sha256(f"{array.dtype}{array.shape}".encode())
    found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def check_same(name: str, value: Any, known: str) -> None:
    """Raises InputError: the weight was compiled with another value."""
    if digest(value) != known:
        raise InputError(
            f"'{name}' is a weight with which the library was compiled, with other values than those given: build it "
            f"again with these, or without '{name}' in params, which makes it an input"
        )
