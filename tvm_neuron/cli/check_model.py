"""neuron-cc check-model: where a model's operators would run, and why, without compiling it.

Example:
  neuron-cc check-model model.onnx --target inf2 --show-names
"""

import argparse
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tvm_neuron.cli import source
from tvm_neuron.cli.io_config import read_io_config
from tvm_neuron.hw import load_device

NAME = "check-model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    source.add_arguments(parser)
    parser.add_argument("--show-names", "--show_names", action="store_true", help="a row for each operator on the CPU")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> None:
    """Prints the placement. Compiling may still move an operator that finds no room beside its neighbours.

    Raises:
        NeuronError: the model can't be read, or there is no such device.
    """
    from tvm_neuron.build import BuildOptions, placed

    load_device(options.target)
    source.check_framework(options)
    mod, params = source.read_model(Path(options.model), read_io_config(options.io_config))
    rows = placed(mod, params, BuildOptions(device=source.device_name(options.target))).placements
    facts = _facts(rows, sum(math.prod(tensor.shape) * 2 for tensor in params.values()), options.target)
    if options.json:
        print(json.dumps(facts, indent=2))
    else:
        _print(facts, options.show_names)


def _facts(rows: Any, weight_bytes: int, target: str) -> dict[str, Any]:
    counts = Counter(row.where for row in rows)
    on_core, on_cpu = counts["neuroncore"], counts["cpu"]
    device = load_device(target)
    return {
        "target": device.name,
        "operators": {"neuroncore": on_core, "cpu": on_cpu, "compile time": counts["compile time"]},
        "percent_on_neuroncore": round(100 * on_core / (on_core + on_cpu), 1) if on_core + on_cpu else 100.0,
        "weight_bytes_in_bf16": weight_bytes,
        "cores_needed": 1 if on_core else 0,
        "cores_to_cache_weights": math.ceil(weight_bytes / device.sbuf_bytes) if on_core else 0,
        "types": [
            {"type": op, "where": where, "operators": count}
            for (op, where), count in sorted(Counter((row.op, row.where) for row in rows).items())
        ],
        "on_cpu": [{"name": row.name, "type": row.op, "reason": row.reason} for row in rows if row.where == "cpu"],
    }


def _print(facts: dict[str, Any], show_names: bool) -> None:
    console = Console()
    table = Table("type", "operators", "runs on")
    for row in facts["types"]:
        table.add_row(row["type"], str(row["operators"]), row["where"])
    console.print(table)
    counts = ", ".join(f"{count} {where}" for where, count in facts["operators"].items() if count)
    console.print(f"operators: {counts}; {facts['percent_on_neuroncore']} % of those that run are on {facts['target']}")
    if facts["cores_needed"]:
        console.print(
            f"It needs one NeuronCore. Its weights, {facts['weight_bytes_in_bf16'] / 1e6:,.1f} MB in bfloat16, would "
            f"fill the SBUF of {facts['cores_to_cache_weights']}."
        )
    if show_names:
        names = Table("on the CPU", "type", "reason")
        for row in facts["on_cpu"]:
            names.add_row(row["name"], row["type"], row["reason"])
        console.print(names)
    elif facts["on_cpu"]:
        reasons = Counter(row["reason"] for row in facts["on_cpu"])
        for reason, count in reasons.most_common():
            console.print(f"{count} on the CPU: {reason}", highlight=False, markup=False)
