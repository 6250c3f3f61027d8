"""TVMCPackage: a compiled model as a tarball of mod.so, mod.json and mod.params."""

import os
import tempfile
import weakref
from pathlib import Path
from shutil import rmtree

import tvm

from tvm_neuron.errors import ModelError
from tvm_neuron.relay import ExecutorFactory
from tvm_neuron.tvmc import archive

LIBRARY, GRAPH, WEIGHTS = "mod.so", "mod.json", "mod.params"


class TVMCPackage:
    """What `compile` wrote. `graph` describes the library; `params` are empty: weights are compiled into it.

    Raises ModelError: the file can't be read, or has no library.
    """

    def __init__(self, package_path: str | os.PathLike[str], project_dir: str | os.PathLike[str] | None = None) -> None:
        del project_dir  # of microTVM
        self.package_path = os.fspath(package_path)
        files = archive.read(package_path, (LIBRARY, GRAPH, WEIGHTS))
        if LIBRARY not in files:
            raise ModelError(f"'{package_path}' has no {LIBRARY}: it is no package that tvmc.compile() wrote")
        folder = tempfile.mkdtemp()
        weakref.finalize(self, rmtree, folder, ignore_errors=True)
        self.lib_name, self.lib_path = LIBRARY, os.path.join(folder, LIBRARY)
        Path(self.lib_path).write_bytes(files[LIBRARY])
        self.graph = files.get(GRAPH, b"").decode()
        self.params = files.get(WEIGHTS, b"")
        self.type = "classic"

    def library(self) -> tvm.runtime.Module:
        """The library, loaded."""
        return tvm.runtime.load_module(self.lib_path)


def export_package(library: ExecutorFactory, path: str | os.PathLike[str]) -> None:
    """Writes a compiled model as a package.

    Raises NeffError: it can't be written or linked.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, LIBRARY)
        library.export_library(file)
        weights = tvm.runtime.save_param_dict(library.get_params())
        archive.write(
            path, {LIBRARY: file.read_bytes(), GRAPH: library.get_graph_json().encode(), WEIGHTS: bytes(weights)}
        )
