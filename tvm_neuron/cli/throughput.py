"""neuron-cc throughput: what a number of cores and requests under way give, by the modelled times.

Examples:
  neuron-cc throughput model.so --cores 4
  neuron-cc throughput model_b1.so model_b8.so --cores 1 4 --queue-depth 1 8 --json
"""

import argparse
import json

from rich.console import Console
from rich.table import Table

from tvm_neuron.cli.compiled import open_compiled

NAME = "throughput"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="libraries (.so) or .neff, one for each batch size")
    parser.add_argument("--cores", nargs="+", type=int, default=[None], metavar="N", help="numbers of cores (a copy's)")
    parser.add_argument(
        "--queue-depth", nargs="+", type=int, metavar="Q", help="requests that are always under way (twice the cores)"
    )
    parser.add_argument("--host-us", type=float, default=0.0, metavar="US", help="of CPU parts, for a request (0)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> None:
    """Prints a row for each file, number of cores and depth; nothing is run but the clock.

    Raises:
        NeuronError: a file can't be read; a number is below 1, or no multiple of a pipeline's cores.
    """
    from tvm_neuron.runtime.throughput import throughput

    rows = []
    for file in options.files:
        compiled = open_compiled(file)
        for cores in options.cores:
            for depth in options.queue_depth or [None]:
                rows.append((file, throughput(compiled, cores, depth, options.host_us)))
    if options.json:
        print(json.dumps([{"file": file} | row.to_dict() for file, row in rows], indent=2))
        return
    table = Table("file", "batch", "cores", "under way", "requests/s", "items/s", "latency us", "limited by")
    for file, row in rows:
        table.add_row(
            file, str(row.batch), str(row.cores), str(row.queue_depth), f"{row.requests_per_second:,.0f}",
            f"{row.items_per_second:,.0f}", f"{row.latency_us:,.0f}", row.bound,
        )  # fmt: skip
    Console().print(table)
