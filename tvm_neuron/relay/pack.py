"""Puts a library's NEFFs and weights into its shared object without compiling or copying them.

TVM writes them as an LLVM constant, which for 300 MB takes seconds and five times the memory. Here TVM lays out small
modules that stand in for those that hold the NEFFs, which are then written in their places.
"""

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path

import numpy as np
import tvm
import tvm_ffi

from tvm_neuron.errors import InternalError
from tvm_neuron.relay.object_file import write_object
from tvm_neuron.runtime.library import entry, entry_names, make_module

_LENGTH = struct.Struct("<Q")
_THIS_PROGRAM = Path("/proc/self/exe")  # its machine counts where all runs on NeuronCores

Pieces = list[bytes | memoryview]


def pack_imports(module: tvm.runtime.Module, is_system_lib: bool, symbol_prefix: str, folder: str) -> str:
    """Write what `module` imports as an object file in `folder`, and give its path: `fpack_imports` of TVM.

    TVM put the code there already, if there is any. Raises NeuronError: see `write_object`.
    """
    del is_system_lib
    with _stand_ins(module) as real:
        tensor = tvm_ffi.get_global_func("runtime.ModulePackImportsToTensor")(module)
    path, code = Path(folder, f"{symbol_prefix}imports.o"), Path(folder, "lib0.o")
    like = code if code.exists() else _THIS_PROGRAM
    write_object(path, f"{symbol_prefix}__tvm_ffi__library_bin", _filled_in(tensor, real), like)
    return str(path)


@contextmanager
def _stand_ins(root: tvm.runtime.Module) -> Iterator[list[tvm.runtime.Module]]:
    """Inside, small modules replace those with NEFFs among all that `root` imports; gives the replaced by number."""
    real: list[tvm.runtime.Module] = []
    changed: list[tuple[tvm.runtime.Module, list[tvm.runtime.Module]]] = []
    pending = [root]
    try:
        while pending:
            importer = pending.pop(0)
            imports = list(importer.imports)
            pending += imports
            if any(map(_has_neffs, imports)):
                changed.append((importer, imports))
                importer.clear_imports()
                for module in imports:
                    if _has_neffs(module):
                        importer.import_module(make_module({_name(len(real)): b""}))
                        real.append(module)
                    else:
                        importer.import_module(module)
        yield real
    finally:
        for importer, imports in changed:
            importer.clear_imports()
            for module in imports:
                importer.import_module(module)


def _has_neffs(module: tvm.runtime.Module) -> bool:
    """Whether it is one that `RunCodegen` made; the factory at the root, of the same kind, has imports."""
    return bool(module.kind == "neuron" and not module.imports)


def _name(number: int) -> str:
    return f"__stands_in_{number}__"


def _filled_in(tensor: tvm.runtime.Tensor, real: list[tvm.runtime.Module]) -> Pieces:
    """TVM's layout with the replaced modules in it: before each module is its length, before all that of all."""
    packed = np.from_dlpack(tensor).tobytes()
    stand_ins = [b"".join(_saved({_name(number): b""})) for number in range(len(real))]
    places = [packed.find(stand_in) for stand_in in stand_ins]
    if -1 in places:
        raise InternalError("this version of TVM lays out the modules of a library in a way that is unknown here")
    pieces: Pieces = []
    at = _LENGTH.size
    for place, stand_in, module in sorted(zip(places, stand_ins, real, strict=True), key=itemgetter(0)):
        pieces += [packed[at:place], *_saved({name: entry(module, name) for name in entry_names(module)})]
        at = place + len(stand_in)
    pieces.append(packed[at:])
    return [_LENGTH.pack(sum(map(len, pieces))), *pieces]


def _saved(entries: Mapping[str, bytes]) -> Pieces:
    """What `SaveToBytes` of neuron_module.cc makes of a module with these entries, with its length before it."""
    pieces: Pieces = []
    for name, value in entries.items():
        key = name.encode()
        pieces += [_LENGTH.pack(len(key)), _LENGTH.pack(len(value)), key, value]
    return [_LENGTH.pack(sum(map(len, pieces))), *pieces]
