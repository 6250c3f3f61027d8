"""neuron-cc list-operators: the operators of a framework, where they run, and under which conditions."""

import argparse
import json

NAME = "list-operators"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    known = ["ONNX", "RELAX", "PYTORCH", "TENSORFLOW", "KERAS", "TFLITE", "MXNET", "XLA"]
    parser.add_argument("--framework", type=str.upper, choices=known, default="ONNX")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> None:
    """Prints them, one a line; where they run is in comments.

    Raises:
        NeuronError: what reads the framework's models is not installed.
    """
    from tvm_neuron.operators import listing
    from tvm_neuron.operators.manual import lines

    found = listing(options.framework)
    if options.json:
        print(json.dumps(found.to_dict(), indent=2))
        return
    if found.becomes:
        print(f"# Operators of {found.framework} that are read. They become {found.becomes}'s, of which")
        print(f"# `neuron-cc list-operators --framework {found.becomes}` says where they run, under which conditions.")
        print("\n".join(operator.name for operator in found.operators))
        return
    print(f"# Where forms of each operator run on {found.device}. On the NeuronCore, for all of them holds:")
    for constraint in found.constraints:
        print(f"#   {constraint}")
    for operator in found.operators:
        print("\n".join([operator.name, *(f"#   {line}" for line in lines(operator))]))
