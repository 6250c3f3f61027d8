"""neuron-cc replay: compile the model of an internal error's bundle again, in the way that failed.

A bundle is data. Its model and its options are read, nothing in it is run, and nothing is written but into a fresh
folder, which is removed at the end.

Example:
  neuron-cc replay neuron-cc-bundle-1.zip
"""

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path

from tvm_neuron.cli import compile as compile_command
from tvm_neuron.cli.interrupt import temporary_folder
from tvm_neuron.cli.progress import stages
from tvm_neuron.errors import InternalError
from tvm_neuron.hw.load import device_to_dict

NAME = "replay"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("bundle", metavar="BUNDLE.zip")


def run(options: argparse.Namespace) -> None:
    """Compiles the bundle's model as was asked for.

    Raises:
        ModelError: it is no bundle, or a damaged one.
        NeuronError: what the compile raises.
    """
    from tvm_neuron.bundle.archive import read_bundle  # here, since it brings onnx with it

    request, model = read_bundle(options.bundle)
    with temporary_folder(Path(tempfile.gettempdir()), "neuron-cc-replay-") as folder, stages(NAME) as on_stage:
        device = Path(folder, "device.json")
        device.write_text(json.dumps(device_to_dict(request.device)))
        request = replace(request, options=replace(request.options, device=str(device)))
        summary = compile_command.make(model, request, Path(folder, f"out{request.suffix}"), on_stage, _stop)
    print(f"{options.bundle} compiles without an error: {summary['headline']}")


def _stop(error: InternalError) -> str:
    """The defect is to be seen: here no build goes on after it."""
    raise error
