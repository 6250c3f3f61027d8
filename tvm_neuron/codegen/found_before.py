"""What searches found before: the tuning of each function, kept in a cache, so that it is not searched for again."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict

import tvm_ffi
from tvm import relax

from tvm_neuron.cache import Store, fingerprint
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.tuning import Tuning
from tvm_neuron.hw import Device

_store: ContextVar[Store | None] = ContextVar("tvm_neuron_found_before", default=None)


@contextmanager
def remembering(store: Store | None) -> Iterator[None]:
    """Searches inside the `with` block look into `store`, and keep there what they find; None: they do neither."""
    token = _store.set(store)
    try:
        yield
    finally:
        _store.reset(token)


def recall(func: relax.Function, device: Device, options: BuildOptions) -> Tuning | None:
    """The tuning that a search of this function for this device with these options ended with, if one is known."""
    store = _store.get()
    if store is None:
        return None
    note = store.fetch(_key(func, device, options), None)
    return None if note is None else Tuning(**note)


def remember(func: relax.Function, device: Device, options: BuildOptions, tuning: Tuning) -> None:
    """For the next search; not what a time budget may have ended."""
    store = _store.get()
    if store is not None and options.time_budget_seconds is None:
        store.keep(_key(func, device, options), None, asdict(tuning))


def _key(func: relax.Function, device: Device, options: BuildOptions) -> str:
    """Were two functions to have one key, one would get a program that is right, but perhaps not the quickest."""
    number = tvm_ffi.structural_hash(func, map_free_vars=True)
    return fingerprint({"search": number, "device": repr(device), "options": options.to_dict()}, [])
