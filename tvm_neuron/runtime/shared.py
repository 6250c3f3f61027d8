"""Weights that several programs of a library have in common: held once, in its file and in memory.

A NEFF is then an outline: the bytes that are its own, and the digests of its weights, each an entry of the library.
"""

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import sha256
from weakref import WeakSet, WeakValueDictionary

import numpy as np

from tvm_neuron import neff
from tvm_neuron.errors import NeffError

ENTRY = "__weights_"
_MAGIC = b"NEFF outline\n"
_SMALLEST_BYTES = 4096
_LENGTH_BYTES = 8

Find = Callable[[str], bytes]

_held: WeakValueDictionary[str, np.ndarray] = WeakValueDictionary()  # what loaded programs use, by digest
_sources: defaultdict[str, "WeakSet[Source]"] = defaultdict(WeakSet)
_lock = threading.Lock()


class Source:
    """The weights among a library's entries, found for the programs of this process as long as this is held."""

    def __init__(self, names: Iterable[str], find: Find) -> None:
        self.find = find
        with _lock:
            for name in names:
                if name.startswith(ENTRY):
                    _sources[name.removeprefix(ENTRY)].add(self)


def outline(data: bytes, entries: dict[str, bytes]) -> bytes:
    """The NEFF without its larger weights, which are put into `entries`; a pipeline's as it is."""
    if len(neff.core_files(data)) != 1:
        return data
    base = _address(np.frombuffer(data, np.uint8))
    parts, own, at = [], [], 0
    for array in sorted(neff.read(data).weights.values(), key=_address):
        begin = _address(array) - base
        if array.nbytes < _SMALLEST_BYTES:
            continue
        digest = _digest(array)
        entries[f"{ENTRY}{digest}"] = data[begin : begin + array.nbytes]
        own.append(data[at:begin])
        parts.append([begin - at, digest])
        at = begin + array.nbytes
    head = json.dumps(parts).encode()
    return b"".join([_MAGIC, len(head).to_bytes(_LENGTH_BYTES, "little"), head, *own, data[at:]])


def whole(data: bytes) -> bytes:
    """The NEFF behind an outline; any other bytes as they are.

    Raises:
        NeffError: a weight is in no library that was opened.
    """
    parts, at = _parts(data)
    if not at:
        return data
    pieces: list[bytes | memoryview] = []
    for size, digest in parts:
        pieces += [data[at : at + size], _weight(digest).data]
        at += size
    return b"".join([*pieces, data[at:]])


def read(data: bytes) -> neff.Pipeline:
    """The program in `data`, a NEFF or an outline; weights that are shared are the same memory for all programs.

    Raises:
        NeffError: see `whole` and `neff.read`.
    """
    shared = {digest: _weight(digest) for _, digest in _parts(data)[0]}
    found = neff.read_pipeline(whole(data))
    if not shared:
        return found
    (core,) = found.cores
    weights = {}
    for name, array in core.weights.items():
        held = shared.get(_digest(array))
        weights[name] = array.copy() if held is None else held.view(array.dtype).reshape(array.shape)
    return neff.Pipeline.of(replace(core, weights=weights))


def _parts(data: bytes) -> tuple[list[tuple[int, str]], int]:
    """How many bytes come before each shared weight, and its digest; and where the first of these bytes lie."""
    if not data.startswith(_MAGIC):
        return [], 0
    at = len(_MAGIC) + _LENGTH_BYTES
    length = int.from_bytes(data[len(_MAGIC) : at], "little")
    return [(int(size), str(digest)) for size, digest in json.loads(data[at : at + length])], at + length


def _weight(digest: str) -> np.ndarray:
    with _lock:
        held = _held.get(digest)
        if held is None:
            source = next(iter(_sources[digest]), None)
            if source is None:
                raise NeffError("the program's weights are not in a library that was opened: open it by its factory")
            held = np.frombuffer(source.find(f"{ENTRY}{digest}"), np.uint8)
            _held[digest] = held
        return held


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _digest(array: np.ndarray) -> str:
    return sha256(array.reshape(-1).view(np.uint8).data).hexdigest()
