"""What `relay.build` returns: the library, before it is given a device."""

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tvm
from tvm.support.cc import create_shared, get_cc

from tvm_neuron.errors import NeffError
from tvm_neuron.relay.pack import pack_imports
from tvm_neuron.runtime import manifest
from tvm_neuron.runtime.packed import load, pack

_FAILED, _COMMAND = "Compilation error:", "Command line: "  # what TVM puts around the linker's complaints
_NO_HASH = "-Wl,--build-id=none"  # of the whole file, which takes the linker longer than the rest of its work


class ExecutorFactory:
    """A compiled library; `factory["default"](device)` gives an executor for `graph_executor.GraphModule`.

    It can be pickled: what comes out is the library without the module that it was made of (`ir_mod` is empty).
    """

    def __init__(self, ir_mod: tvm.IRModule, target: tvm.target.Target, module: tvm.runtime.Module, name: str) -> None:
        self.ir_mod = ir_mod
        self.target = target
        self.module = module
        self.libmod_name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (*pack(self), self.target.export(), self.libmod_name)

    def __getitem__(self, name: str) -> Any:
        """`default` makes executors, `debug_create` what `debug_executor.GraphModuleDebug` takes."""
        return self.module[name] if name != "debug_create" else lambda _name, *_devices: self

    def __iter__(self) -> Iterator[Any]:
        """The triple `graph, lib, params` of scripts older than TVM 0.7."""
        warnings.warn("unpacking the result of relay.build is deprecated; use it as one library", stacklevel=2)
        return iter((self.get_graph_json(), self.get_lib(), self.get_params()))

    def export_library(self, file_name: str | os.PathLike[str], **kwargs: Any) -> None:
        """Write the library as a shared object, whole or not at all; `kwargs` are those of TVM's `export_library`.

        Raises:
            NeffError: it can't be written, or linked.
        """
        with self.exporting(file_name, **kwargs):
            pass

    @contextmanager
    def exporting(self, file_name: str | os.PathLike[str], **kwargs: Any) -> Iterator[None]:
        """The same; the linker works while the `with` block does, and the file is there after it."""
        path = Path(file_name)
        is_plain = sys.platform == "linux" and path.suffix == ".so"
        if is_plain and not {"cc", "fcompile"} & kwargs.keys() and get_cc() is None:
            raise NeffError(
                f"'{path}' can't be linked: no C++ compiler is on the PATH; install one (g++ or clang), or name it in "
                "the environment variable CXX"
            )
        with _told(path):
            aside = tempfile.TemporaryDirectory(dir=path.absolute().parent)
        with aside as folder, ThreadPoolExecutor(1) as linker:
            written = Path(folder, path.name)
            linking: list[Future[None]] = []

            def link(output: str, objects: list[str], options: Sequence[str] = (), **others: Any) -> None:
                chosen = [*options, _NO_HASH]
                linking.append(linker.submit(create_shared, output, objects, options=chosen, **others))

            plain = {"fpack_imports": pack_imports, "fcompile": link, "workspace_dir": folder} if is_plain else {}
            with _told(path):
                self.module.export_library(str(written), **plain | kwargs)
            yield
            with _told(path):
                for link_result in linking:
                    _wait_for_linker(link_result, path)
                os.replace(written, path)

    @property
    def lib(self) -> tvm.runtime.Module:
        """The same as `get_lib()`."""
        return self.module

    @property
    def graph_json(self) -> str:
        """The same as `get_graph_json()`."""
        return self.get_graph_json()

    def get_params(self) -> dict[str, tvm.runtime.Tensor]:
        """No weights: they are compiled into the library."""
        return {}

    @property
    def params(self) -> dict[str, tvm.runtime.Tensor]:
        """The same as `get_params()`."""
        return self.get_params()

    def get_lib(self) -> tvm.runtime.Module:
        """The runtime module."""
        return self.module

    def get_executor_config(self) -> str:
        """What is known of the library, as JSON text."""
        return json.dumps(manifest(self.module))

    def get_graph_json(self) -> str:
        """The same as `get_executor_config()`."""
        return self.get_executor_config()


def _unpickled(content: bytes, digest: str, target: dict[str, Any], name: str) -> ExecutorFactory:
    return ExecutorFactory(tvm.IRModule(), tvm.target.Target(target), load(content, digest), name)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What the file system refuses inside, as an error that names the library."""
    try:
        yield
    except OSError as error:
        raise NeffError(f"'{path}' can't be written: {error.strerror}") from error


def _wait_for_linker(linking: "Future[None]", path: Path) -> None:
    try:
        linking.result()
    except RuntimeError as error:
        told = str(error).partition(_COMMAND)[0].removeprefix(_FAILED).strip()
        raise NeffError(f"'{path}' can't be linked: {told}") from error
    except OSError as error:
        raise NeffError(f"'{path}' can't be linked: {error.filename}: {error.strerror}") from error
