"""`python -m benchmarks.simulators`: ResNet-50 on this model and on SCALE-Sim, ZigZag and Vela, as one table.

Each simulator runs alone, one after the other. SCALE-Sim takes minutes and 10 GB, so what the others took is kept in a
file and measured once; those without a Python are left out.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import machine
from benchmarks.publish import replace_block
from benchmarks.simulators.ask import request
from benchmarks.simulators.kept import KEPT, Kept
from benchmarks.simulators.peers import PEERS
from benchmarks.simulators.rows import Found, find, rows
from benchmarks.table import CONSOLE, make_table
from tvm_neuron.frontend.sample_models import light_network


def main() -> None:
    """Measures, prints, and publishes if asked to."""
    parser = _parser()
    options = parser.parse_args()
    kept = Kept(options.kept)
    with TemporaryDirectory() as folder:
        asked = request(light_network("resnet50"), Path(folder, "network.onnx"))
        pythons, absent = find(asked, kept, {peer: getattr(options, peer.name) for peer in PEERS})
        if absent and options.publish:
            parser.error(str(absent[0]))
        for error in absent:
            CONSOLE.print(str(error), highlight=False, markup=False, soft_wrap=True)
        show(rows(asked, kept, pythons))
    if options.publish:
        replace_block("BENCHMARKS.md", "simulators", CONSOLE.export_text())


def show(found: Iterable[Found]) -> None:
    """The table."""
    facts = ", ".join(f"{key} {value}" for key, value in machine.describe().items())
    columns = ("who", "time s>", "CPU s>", "memory MB>", "cycles>", "array", "what it leaves out")
    table = make_table(f"ResNet-50, batch 1, from the model to cycles, on: {facts}", *columns)
    for row in found:
        took = row.measured
        peak = f"{took.peak_bytes / 1e6:,.0f}" if took.peak_bytes else ""
        times = f"{took.seconds:.1f}", f"{took.cpu_seconds:.1f}"
        table.add_row(row.who, *times, peak, f"{took.cycles:,}", took.array, row.leaves_out)
    CONSOLE.print(table)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulators", description=__doc__)
    for peer in PEERS:
        where = f"default: {peer.variable}; {peer.install}"
        parser.add_argument(peer.option, dest=peer.name, type=Path, metavar="PYTHON", help=where)
    words = "what others took (%(default)s)"
    parser.add_argument("--kept", type=Path, default=KEPT.file, metavar="FILE", help=words)
    parser.add_argument("--publish", action="store_true", help="write BENCHMARKS.md; all three must be there")
    return parser


if __name__ == "__main__":
    main()
