"""`python -m benchmarks.simulators`: ResNet-50 on this model and on SCALE-Sim, ZigZag and Vela, as one table.

Each simulator runs alone, one after the other. SCALE-Sim takes minutes and 10 GB; those without a Python are left out.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from benchmarks import machine
from benchmarks.publish import replace_block
from benchmarks.row import Row
from benchmarks.simulators.graph import graph
from benchmarks.simulators.layers import layers, with_shapes
from benchmarks.simulators.measure import Measured, measure
from benchmarks.simulators.peers import PEERS, AbsentError, Peer
from benchmarks.table import CONSOLE, make_table
from tvm_neuron.frontend.sample_models import light_network
from tvm_neuron.hw import load_device

CHIP = "inf2"  # its matrix engine is the array of 128 x 128
_BYTES = 2  # of a value in bf16
_OURS = {
    "the time alone": ("run_ours.py", False, "outputs; what a host and its link add"),
    "with outputs": ("run_ours.py", True, "what a host and its link add"),
}


def request(model: onnx.ModelProto, file: Path) -> dict[str, Any]:
    """What all are asked: the network in the forms that they take, the array, and the memories of one core of `CHIP`.

    Buffers and bandwidth are counted in values, so that those who count bytes or words of 8 bits get the same.
    """
    onnx.save(with_shapes(model), file)
    device = load_device(CHIP)
    array = {
        "rows": device.pe_rows,
        "columns": device.pe_columns,
        "buffer_kb": device.sbuf_bytes // 3 // _BYTES // 1024,  # one each for inputs, weights and results
        "words_per_cycle": int(device.dram_bytes_per_second / device.pe_clock_hz / _BYTES),
    }
    listed = [asdict(layer) for layer in layers(model)]
    return {"onnx": str(file), "chip": CHIP, "layers": listed, "graph": graph(model), "array": array}


def rows(pythons: Mapping[Peer, Path], model: onnx.ModelProto) -> Iterator[tuple[str, Measured, str]]:
    """Who, what it took, and what it leaves out."""
    with TemporaryDirectory() as folder:
        asked = request(model, Path(folder, "network.onnx"))
        for what, (script, has_outputs, leaves_out) in _OURS.items():
            found = measure(sys.executable, "tvm-neuron", script, asked | {"outputs": has_outputs})
            yield f"tvm_neuron {found.version}, {what}", found, leaves_out
        for peer, python in pythons.items():
            found = measure(python, peer.distribution, peer.script, asked)
            yield f"{peer.name} {found.version}", found, peer.leaves_out


def beside_others() -> list[Row]:
    """A run with outputs beside each simulator that is installed: time and memory of the whole process."""
    pythons = {peer: python for peer in PEERS if isinstance(python := _find(peer, None), Path)}
    _, (_, ours, _), *others = rows(pythons, light_network("resnet50"))
    found = []
    for what, unit, value in (("time", "s", _seconds), ("memory", "MB", _megabytes)):
        row = Row(what=f"ResNet-50, from the model to cycles and outputs: {what}", unit=unit, samples=value(ours))
        found += [replace(row, peer=who, peer_samples=value(theirs)) for who, theirs, _ in others] or [row]
    return found


def _seconds(found: Measured) -> tuple[float, ...]:
    return (found.seconds,)


def _megabytes(found: Measured) -> tuple[float, ...]:
    return (math.nan if found.peak_bytes is None else found.peak_bytes / 1e6,)


def _find(peer: Peer, given: Path | None) -> Path | AbsentError:
    try:
        return peer.python(given)
    except AbsentError as absent:
        return absent


def main() -> None:
    """Measures, prints, and publishes if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulators", description=__doc__)
    for peer in PEERS:
        parser.add_argument(
            peer.option, dest=peer.name, type=Path, metavar="PYTHON", help=f"default: {peer.variable}; {peer.install}"
        )
    parser.add_argument("--publish", action="store_true", help="write BENCHMARKS.md; all three must be there")
    options = parser.parse_args()
    pythons = {}
    for peer in PEERS:
        found = _find(peer, getattr(options, peer.name))
        if isinstance(found, Path):
            pythons[peer] = found
        elif options.publish:
            parser.error(str(found))
        else:
            CONSOLE.print(str(found), highlight=False, markup=False)
    facts = ", ".join(f"{key} {value}" for key, value in machine.describe().items())
    columns = ("who", "time s>", "CPU s>", "memory MB>", "cycles>", "array", "what it leaves out")
    table = make_table(f"ResNet-50, batch 1, from the model to cycles, on: {facts}", *columns)
    for who, measured, leaves_out in rows(pythons, light_network("resnet50")):
        peak = f"{measured.peak_bytes / 1e6:,.0f}" if measured.peak_bytes else ""
        times = f"{measured.seconds:.1f}", f"{measured.cpu_seconds:.1f}"
        table.add_row(who, *times, peak, f"{measured.cycles:,}", measured.array, leaves_out)
    CONSOLE.print(table)
    if options.publish:
        replace_block("BENCHMARKS.md", "simulators", CONSOLE.export_text())


if __name__ == "__main__":
    main()
