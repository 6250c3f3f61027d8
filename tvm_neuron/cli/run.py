"""neuron-cc run: a compiled file on the hardware model, inputs and outputs as .npz files."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tvm_neuron import neff
from tvm_neuron.cli.arrays import Arrays, read_npz, write_npz
from tvm_neuron.cli.compiled import open_compiled
from tvm_neuron.cli.output import written_aside
from tvm_neuron.isa.dtypes import DTYPES

NAME = "run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", metavar="FILE", help="a .neff, or a library (.so)")
    parser.add_argument("--input", required=True, metavar="X.npz", help="one array for each input, by name")
    parser.add_argument("--output", required=True, metavar="Y.npz", help="gets one array for each output, by name")


def run(options: argparse.Namespace) -> None:
    """Runs it once.

    Raises:
        NeuronError: a file can't be read or written, or the inputs don't fit the model.
    """
    compiled = open_compiled(options.file)
    inputs = read_npz(options.input)
    is_neff = isinstance(compiled, neff.Pipeline)
    outputs = _run_neff(compiled, inputs) if is_neff else _run_library(compiled, inputs)
    with written_aside(Path(options.output)) as made:
        write_npz(made, outputs)


def _run_neff(compiled: neff.Pipeline, inputs: Mapping[str, Any]) -> Arrays:
    from tvm_neuron.sim import Cores

    neff.check_inputs(compiled.inputs, inputs)
    cores = Cores(compiled)
    in_memory = {name: DTYPES[tensor.dtype] for name, tensor in cores.inputs.items()}
    results = cores.run({name: array.astype(in_memory[name], copy=False) for name, array in inputs.items()})
    return {info.name: results[info.name].astype(np.dtype(info.dtype), copy=False) for info in compiled.outputs}


def _run_library(library: Any, inputs: Mapping[str, Any]) -> Arrays:
    import tvm

    executor = library["default"](tvm.cpu())
    executor.run(**inputs)
    return {info.name: executor.get_output(index).numpy() for index, info in enumerate(executor.outputs)}
