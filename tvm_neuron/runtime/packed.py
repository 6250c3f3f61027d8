"""Libraries as bytes inside of something else that is saved: a script of torch, a SavedModel."""

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
            _loaded[digest] = _load(content(), digest), Lock()
        return _loaded[digest]


def _load(content: bytes, digest: str) -> Executor:
    if sha256(content).hexdigest() != digest:
        raise NeffError("the library inside the traced model is damaged: its bytes are not those that were compiled")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.so")
        file.write_bytes(content)
        module = tvm.runtime.load_module(str(file))
    executor: Executor = module["default"](tvm.cpu())
    return executor
