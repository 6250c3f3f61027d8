"""What a compiled library holds besides code: its manifest and its NEFFs, built just now or loaded from a file."""

import json
from collections.abc import Iterator
from typing import Any

import tvm

from tvm_neuron.errors import NeuronError
from tvm_neuron.runtime import shared
from tvm_neuron.runtime.library import FACTORY_ENTRY, MANIFEST_ENTRY, entry, entry_names

Library = Any
"""A `tvm.runtime.Module`, an `Executable` of `tvm.compile`, or what `relay.build` returns (it has `.module`)."""


def manifest(library: Library) -> dict[str, Any]:
    """The manifest of `library`: compiler, options, device, placement, subgraphs, inputs and outputs.

    Of a library with several buckets, that of the first; see `virtual_machines`.

    Raises NeuronError when the library was not compiled by tvm_neuron.
    """
    for module in _neuron_modules(virtual_machines(library)[0]):
        if MANIFEST_ENTRY in entry_names(module):
            return json.loads(entry(module, MANIFEST_ENTRY))
    raise NeuronError("this library holds no Neuron manifest: it was not compiled for target 'neuron'")


def neffs(library: Library) -> dict[str, bytes]:
    """The NEFF of each Neuron subgraph by its symbol, in the order in which they run; of the first bucket."""
    found = dict[str, bytes]()
    _source = weights_of(library)  # held until all are read
    for module in _neuron_modules(virtual_machines(library)[0]):
        found |= {name: shared.whole(entry(module, name)) for name in entry_names(module) if not name.startswith("__")}
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def root_module(library: Library) -> tvm.runtime.Module:
    """The runtime module behind any of the forms a library comes in."""
    if isinstance(library, tvm.runtime.Executable):
        return library.mod
    module = getattr(library, "module", library)
    if not isinstance(module, tvm.runtime.Module):
        raise NeuronError(f"expected a compiled library, got {type(library).__name__}")
    return module


def virtual_machines(library: Library) -> list[tvm.runtime.Module]:
    """The modules that hold code of Relax's virtual machine, one for each bucket, each a library of its own.

    What `relay.build` makes has a factory around one, what `relay.build_buckets` makes around several.
    """
    root = root_module(library)
    has_factory = root.kind == "neuron" and FACTORY_ENTRY in entry_names(root)
    return list(root.imports) if has_factory else [root]


def weights_of(library: Library) -> shared.Source:
    """Where the library's programs find the weights that they share."""
    root = root_module(library)
    return shared.Source(entry_names(root) if root.kind == "neuron" else (), lambda name: entry(root, name))


def _neuron_modules(module: tvm.runtime.Module) -> Iterator[tvm.runtime.Module]:
    pending = [module]
    while pending:
        module = pending.pop(0)
        if module.kind == "neuron":
            yield module
        pending.extend(module.imports)
