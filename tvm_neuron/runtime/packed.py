"""Libraries as bytes inside of something else that is saved: a script of torch, a SavedModel, a pickle."""

import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import tvm

from tvm_neuron.errors import NeffError
from tvm_neuron.runtime.executor import Executor

_loaded: dict[str, tuple[Executor, Lock]] = {}
_loading = Lock()


def pack(library: Any) -> tuple[bytes, str]:
    """The bytes of the library of `relay.build`, and the digest that `unpacked` knows it by."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.so")
        library.export_library(file)
        content = file.read_bytes()
    return content, sha256(content).hexdigest()


def unpacked(content: Callable[[], bytes], digest: str) -> tuple[Executor, Lock]:
    """The library's executor, loaded once in a process, when `content` is asked, and what to hold while it runs.

    Raises:
        NeffError: the bytes are not those that were packed.
    """
    with _loading:
        if digest not in _loaded:
            _loaded[digest] = load(content(), digest)["default"](tvm.cpu()), Lock()
        return _loaded[digest]


def load(content: bytes, digest: str) -> tvm.runtime.Module:
    """The module of the library that `pack` packed.

    Raises NeffError: the bytes are not those that were packed.
    """
    if sha256(content).hexdigest() != digest:
        raise NeffError("the packed library is damaged: its bytes are not those that were compiled")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.so")
        file.write_bytes(content)
        return tvm.runtime.load_module(str(file))
