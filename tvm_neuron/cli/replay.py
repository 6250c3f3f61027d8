"""neuron-cc replay: run the command of an internal error's bundle again, on its model.

Example:
  neuron-cc replay neuron-cc-bundle-1.zip
"""

import argparse
import contextlib
import json
import tempfile
import zipfile
from pathlib import Path

import onnx

from tvm_neuron.cli import compile as compile_command
from tvm_neuron.errors import ModelError

NAME = "replay"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("bundle", metavar="BUNDLE.zip")


def run(options: argparse.Namespace) -> None:
    """Compiles the bundle's model with the bundle's words, in a folder of its own.

    Raises:
        ModelError: it is no bundle.
        NeuronError: what the command raises.
    """
    from tvm_neuron.cli.bundle import FILES, MODEL, with_random_weights

    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(options.bundle) as bundle:
                words = json.loads(bundle.read("facts.json"))["words"]
                bundle.extractall(folder)
            files = Path(folder, FILES)
            model = onnx.load(files / MODEL)
            if words[0] != compile_command.NAME:
                raise ValueError(f"its command is '{words[0]}', not {compile_command.NAME}")
        except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
            raise ModelError(f"'{options.bundle}' is no bundle of neuron-cc: {error}") from error
        onnx.save(with_random_weights(model), files / MODEL)
        with contextlib.chdir(files):
            compile_command.run(_parsed(words[1:]))


def _parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"neuron-cc {compile_command.NAME}")
    compile_command.add_arguments(parser)
    return parser.parse_args(words)
