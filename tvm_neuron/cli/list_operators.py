"""neuron-cc list-operators: the operators of a framework that can be compiled, and what they must keep."""

import argparse
import json
from typing import Any

NAME = "list-operators"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--framework", type=str.upper, choices=["ONNX"], default="ONNX")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> None:
    """Prints them, one a line; the notes are comments."""
    from tvm_neuron.partition.operators import general_constraints, onnx_operators

    rows = [row.to_dict() for row in onnx_operators()]
    if options.json:
        print(json.dumps({"constraints": general_constraints(), "operators": rows}, indent=2))
        return
    print(
        "# An operator runs on the NeuronCore where all of this holds and a schedule fits its kernel, else on the CPU."
    )
    for constraint in general_constraints():
        print(f"#   {constraint}")
    for row in rows:
        print("\n".join(_lines(row)))


def _lines(row: dict[str, Any]) -> list[str]:
    return [row["name"] + (" # CPU only" if row["where"] == "cpu" else ""), *(f"#   {note}" for note in row["notes"])]
