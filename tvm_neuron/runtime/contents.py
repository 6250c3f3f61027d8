"""What a compiled library holds besides code: its manifest and its NEFFs, built just now or loaded from a file."""

import json
from collections.abc import Iterator
from math import prod
from typing import Any

import tvm

from tvm_neuron.errors import NeuronError
from tvm_neuron.runtime import shared
from tvm_neuron.runtime.bound import BOUND_ENTRY
from tvm_neuron.runtime.library import FACTORY_ENTRY, MANIFEST_ENTRY, entry, entry_names
from tvm_neuron.spmd import Plan

PLAN_ENTRY = "__plan__"
"""Entry that holds the plan of a program on several cores as JSON; its parts are the imports, in their order."""

Library = Any
"""A `tvm.runtime.Module`, an `Executable` of `tvm.compile`, or what `relay.build` returns (it has `.module`)."""


def manifest(library: Library, bucket: int = 0) -> dict[str, Any]:
    """The manifest of `library`: compiler, options, device, placement, subgraphs, inputs and outputs.

    Of a library with several buckets, that of one, by their size: 0 is the smallest.

    Raises NeuronError when the library was not compiled by tvm_neuron, or has no such bucket.
    """
    found = _manifest_in(_bucket(library, bucket))
    if found is None:
        raise NeuronError("this library holds no Neuron manifest: it was not compiled for target 'neuron'")
    return found


def neffs(library: Library, bucket: int = 0) -> dict[str, bytes]:
    """The NEFF of each Neuron subgraph by its symbol, in the order in which they run.

    Raises NeuronError when there is no such bucket.
    """
    found = dict[str, bytes]()
    _source = weights_of(library)  # held until all are read
    chosen = _bucket(library, bucket)
    is_in_parts = plan_of(library) is not None
    for number, part in enumerate(chosen.imports if is_in_parts else [chosen]):
        for module in _neuron_modules(part):
            names = [name for name in entry_names(module) if not name.startswith("__")]
            found |= {part_name(number, n) if is_in_parts else n: shared.whole(entry(module, n)) for n in names}
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def part_name(number: int, name: str) -> str:
    """What a step of a part is called beside those of other parts."""
    return f"part{number}_{name}"


def plan_of(library: Library) -> Plan | None:
    """The plan of a library whose program is for several devices; None of any other."""
    root = root_module(library)
    has_plan = root.kind == "neuron" and PLAN_ENTRY in entry_names(root)
    return Plan.from_json(entry(root, PLAN_ENTRY).decode()) if has_plan else None


def root_module(library: Library) -> tvm.runtime.Module:
    """The runtime module behind any of the forms a library comes in."""
    if isinstance(library, tvm.runtime.Executable):
        return library.mod
    module = getattr(library, "module", library)
    if not isinstance(module, tvm.runtime.Module):
        raise NeuronError(f"expected a compiled library, got {type(library).__name__}")
    return module


def virtual_machines(library: Library) -> list[tvm.runtime.Module]:
    """The modules that hold code of Relax's virtual machine, one for each bucket, with fewer elements in inputs first.

    What `relay.build` makes has a factory around one, what `relay.build_buckets` makes around several. A program in
    parts is one of its own.
    """
    root = root_module(library)
    entries = entry_names(root) if root.kind == "neuron" else []
    has_factory = FACTORY_ENTRY in entries and PLAN_ENTRY not in entries
    return sorted(root.imports, key=_input_elems) if has_factory else [root]


def _input_elems(module: tvm.runtime.Module) -> int:
    return sum(prod(row["shape"]) for row in (_manifest_in(module) or {"inputs": ()})["inputs"])


def _manifest_in(module: tvm.runtime.Module) -> dict[str, Any] | None:
    for part in _neuron_modules(module):
        if MANIFEST_ENTRY in entry_names(part):
            found: dict[str, Any] = json.loads(entry(part, MANIFEST_ENTRY))
            return found
    return None


def _bucket(library: Library, number: int) -> tvm.runtime.Module:
    found = virtual_machines(library)
    if not 0 <= number < len(found):
        raise NeuronError(f"the library has no bucket {number}: its buckets are 0 to {len(found) - 1}")
    return found[number]


def weights_of(library: Library) -> shared.Source:
    """Where the library's programs find the weights that they share."""
    root = root_module(library)
    return shared.Source(entry_names(root) if root.kind == "neuron" else (), lambda name: entry(root, name))


def bound_in(library: Library) -> dict[str, str]:
    """The digests of the weights that the library was compiled with, by name; none if it does not tell them."""
    root = root_module(library)
    has_them = root.kind == "neuron" and BOUND_ENTRY in entry_names(root)
    found: dict[str, str] = json.loads(entry(root, BOUND_ENTRY)) if has_them else {}
    return found


def _neuron_modules(module: tvm.runtime.Module) -> Iterator[tvm.runtime.Module]:
    pending = [module]
    while pending:
        module = pending.pop(0)
        if module.kind == "neuron":
            yield module
        pending.extend(module.imports)
