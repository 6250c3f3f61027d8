"""The command tvmc: compile, run and tune models, with the options of TVM 0.18's.

  tvmc compile --target neuron --output model.tar model.onnx
  tvmc run --inputs x.npz --output y.npz --print-time model.tar
  tvmc tune --target neuron --output records.json model.onnx
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import tvm_neuron.relay  # noqa: F401 - packages need its names
from tvm_neuron.cli.arrays import read_npz, write_npz
from tvm_neuron.errors import NeuronError
from tvm_neuron.runtime import VERSION
from tvm_neuron.tvmc.compiler import compile_model
from tvm_neuron.tvmc.model import load_model
from tvm_neuron.tvmc.package import TVMCPackage
from tvm_neuron.tvmc.runner import DEVICES, FILL_MODES, run_module
from tvm_neuron.tvmc.tuner import tune_model

_SHAPE = re.compile(r"(\S+?)\s*:\s*\[([^\]]*)\]\s*")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line; returns its exit code: 1 if it was refused, with the reason on stderr."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except NeuronError as error:
        print(f"tvmc {options.command}: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("tvmc", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"tvmc of tvm_neuron {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)

    compiling = commands.add_parser("compile", help="a model into a package")
    _add_model(compiling)
    compiling.add_argument("-o", "--output", default="module.tar", help="the package (module.tar)")
    compiling.add_argument("-O", "--opt-level", type=int, default=3, choices=range(4), help="of TVM's passes (3)")
    compiling.add_argument("--tuning-records", help="what tune wrote")
    compiling.add_argument("--disabled-pass", default="", help="names of passes, with commas")
    compiling.add_argument("--module-name", default="default", help="the executor's name in the library")
    compiling.set_defaults(run=_compile)

    running = commands.add_parser("run", help="a package on inputs")
    running.add_argument("FILE", help="the package")
    running.add_argument("-i", "--inputs", help="a .npz file; other inputs are made up")
    running.add_argument("-o", "--outputs", help="a .npz file for output_0, output_1, ...")
    running.add_argument("--device", choices=DEVICES, default="neuron", help="both are the hardware model")
    running.add_argument("--fill-mode", choices=FILL_MODES, default="random", help="what inputs are made up of")
    running.add_argument("--print-time", action="store_true", help="the modelled latency, and the time on this machine")
    running.add_argument("--print-top", type=int, metavar="N", help="the places of the N greatest outputs")
    running.add_argument("--profile", action="store_true", help="the modelled time by layer and engine")
    running.add_argument("--end-to-end", action="store_true", help="times include copying inputs and outputs")
    running.add_argument("--repeat", type=int, default=1, help="times to be told (1)")
    running.add_argument("--number", type=int, default=1, help="runs for each of them (1)")
    running.set_defaults(run=_run)

    tuning = commands.add_parser("tune", help="search for a quicker program")
    _add_model(tuning)
    tuning.add_argument("-o", "--output", required=True, help="the file for the tuning records")
    tuning.add_argument("--tuning-records", help="what tune wrote before")
    for name in ("--early-stopping", "--min-repeat-ms", "--number", "--parallel", "--repeat", "--timeout", "--trials",
                 "--tuner"):  # fmt: skip
        tuning.add_argument(name, help="changes nothing: the search asks the cost model, no device")
    tuning.add_argument("--enable-autoscheduler", action="store_true", help="changes nothing: there is one search")
    tuning.set_defaults(run=_tune)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("FILE", help="the model file")
    parser.add_argument("--target", required=True, help="neuron, neuron/inf2, ..., or llvm")
    parser.add_argument("--model-format", help="where the file's name does not tell it: onnx, pytorch, tflite, ...")
    parser.add_argument("--input-shapes", type=shapes, metavar="'NAME:[1,3,224,224] ...'", help="of dynamic inputs")


def shapes(text: str) -> dict[str, list[int]]:
    """Shapes by input from `name:[1,2] other:[3]`."""
    found = _SHAPE.findall(text)
    try:
        parsed = {name: [int(size) for size in sizes.split(",") if size.strip()] for name, sizes in found}
    except ValueError:
        parsed = {}
    if not parsed or _SHAPE.sub("", text).strip():
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form 'name:[1,3,224,224] other:[1,10]'")
    return parsed


def _compile(options: argparse.Namespace) -> None:
    model = load_model(options.FILE, options.model_format, options.input_shapes)
    compile_model(
        model, options.target, options.opt_level, tuning_records=options.tuning_records, package_path=options.output,
        disabled_pass=[name for name in options.disabled_pass.split(",") if name], mod_name=options.module_name,
    )  # fmt: skip


def _run(options: argparse.Namespace) -> None:
    package = TVMCPackage(options.FILE)
    inputs = read_npz(options.inputs) if options.inputs else None
    result = run_module(
        package, options.device, inputs=inputs, fill_mode=options.fill_mode, benchmark=options.print_time,
        repeat=options.repeat, number=options.number, profile=options.profile, end_to_end=options.end_to_end,
    )  # fmt: skip
    if options.print_time:
        print(result.format_times())
    if options.profile:
        print(result.profile)
    if options.print_top:
        for name, array in result.outputs.items():
            places = np.argsort(array, axis=None)[::-1][: options.print_top]
            print(f"{name}: {json.dumps({int(place): float(array.flat[place]) for place in places})}")
    if options.outputs:
        write_npz(Path(options.outputs), result.outputs)


def _tune(options: argparse.Namespace) -> None:
    model = load_model(options.FILE, options.model_format, options.input_shapes)
    tune_model(model, options.target, options.output, options.tuning_records)

