"""Rows of the table: what ours took for a request, and what the others took, now or earlier."""

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.row import Row
from benchmarks.simulators.ask import request
from benchmarks.simulators.kept import KEPT, Kept
from benchmarks.simulators.measure import Measured, measure
from benchmarks.simulators.peers import PEERS, AbsentError, Peer
from tvm_neuron.frontend.sample_models import light_network

_OURS = {
    "the time alone": (False, "outputs; what a host and its link add"),
    "with outputs": (True, "what a host and its link add"),
}
Request = dict[str, Any]
Pythons = dict[Peer, Path]


@dataclass(frozen=True)
class Found:
    """Who, what it took, and what it leaves out."""

    who: str
    measured: Measured
    leaves_out: str


def find(asked: Request, kept: Kept, given: Mapping[Peer, Path | None]) -> tuple[Pythons, list[AbsentError]]:
    """The Pythons of those that weren't measured before, and an error for each that isn't there; see `Peer.python`."""
    pythons, absent = Pythons(), []
    for peer in PEERS:
        try:
            if kept.get(peer, asked) is None:
                pythons[peer] = peer.python(given.get(peer))
        except AbsentError as error:
            absent.append(error)
    return pythons, absent


def rows(asked: Request, kept: Kept, pythons: Pythons) -> Iterator[Found]:
    """Ours, and of the others those that were measured before and those in `pythons`."""
    for what, (has_outputs, leaves_out) in _OURS.items():
        ours = measure(sys.executable, "tvm-neuron", "run_ours.py", asked | {"outputs": has_outputs})
        yield Found(f"tvm_neuron {ours.version}, {what}", ours, leaves_out)
    for peer in PEERS:
        if peer in pythons:
            kept.put(peer, asked, measure(pythons[peer], peer.distribution, peer.script, asked))
        if known := kept.get(peer, asked):
            yield Found(f"{peer.name} {known.version}", known, peer.leaves_out)


def beside_others() -> list[Row]:
    """A run with outputs beside each simulator that is known: time and memory of the whole process."""
    with TemporaryDirectory() as folder:
        asked = request(light_network("resnet50"), Path(folder, "network.onnx"))
        _, ours, *others = rows(asked, KEPT, find(asked, KEPT, {})[0])
    found = []
    for what, unit, value in (("time", "s", _seconds), ("memory", "MB", _megabytes)):
        name = f"ResNet-50, from the model to cycles and outputs: {what}"
        row = Row(what=name, unit=unit, samples=value(ours.measured))
        found += [replace(row, peer=each.who, peer_samples=value(each.measured)) for each in others] or [row]
    return found


def _seconds(found: Measured) -> tuple[float, ...]:
    return (found.seconds,)


def _megabytes(found: Measured) -> tuple[float, ...]:
    return (math.nan if found.peak_bytes is None else found.peak_bytes / 1e6,)
