"""neuron-cc compile: from a model to a NEFF, or to a library where some of it runs on the CPU."""

import argparse
from pathlib import Path
from typing import Any

from tvm_neuron.cli import precision
from tvm_neuron.cli.io_config import read_io_config
from tvm_neuron.cli.progress import stages
from tvm_neuron.errors import PlacementError
from tvm_neuron.hw import CHIPS, load_device

NAME = "compile"
_QUIET = ("error", "critical")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("--framework", type=str.upper, choices=["ONNX"], default="ONNX")
    parser.add_argument("--io-config", metavar="JSON", help="shapes and dtypes of inputs: JSON text or a file with it")
    parser.add_argument(
        "--output", type=_output, default="out.neff", metavar="FILE", help=".neff, or .so to let parts run on the CPU"
    )
    parser.add_argument("--target", default="inf1", help=f"{', '.join(CHIPS)} or a device description (.json)")
    precision.add_arguments(parser)
    parser.add_argument(
        "--minimum-segment-size",
        type=int,
        metavar="N",
        help="keep parts of at least N operators on the NeuronCore; without it they are weighed by the time they gain",
    )
    parser.add_argument(
        "--on-cpu",
        action="append",
        default=[],
        metavar="PATTERN",
        help="keep the operators whose names fit on the CPU: 'head/*'; may be given again",
    )
    parser.add_argument("--must-compile", action="store_true", help="refuse operators on the CPU in a .so too")
    parser.add_argument(
        "--verbose",
        type=str.lower,
        choices=["debug", "info", "warning", *_QUIET],
        default="info",
        help="error: no progress",
    )


def run(options: argparse.Namespace) -> None:
    """Compiles and writes the output, whole or not at all.

    Raises:
        NeuronError: the model can't be read, placed or compiled, or the output not be written.
    """
    from tvm_neuron import neff, relay
    from tvm_neuron.build import BuildOptions
    from tvm_neuron.cli.artifact import whole_neff
    from tvm_neuron.runtime import report

    inputs = read_io_config(options.io_config)
    load_device(options.target)
    is_neff = options.output.endswith(".neff")
    with stages("compile", is_quiet=options.verbose in _QUIET) as on_stage:
        on_stage(f"import {options.model}")
        mod, params = relay.frontend.from_onnx(
            options.model, inputs.shapes, inputs.dtypes or "float32", values=inputs.values
        )
        chosen = BuildOptions(
            must_compile=options.must_compile or is_neff,
            minimum_segment_size=options.minimum_segment_size,
            on_cpu=tuple(options.on_cpu),
            on_stage=on_stage,
            **precision.as_build_options(options),
        )
        try:
            library = relay.build(mod, target=_target(options.target), params=params, options=chosen)
        except PlacementError as error:
            advice = "" if options.must_compile else "\nto run them on the CPU, write a library: --output FILE.so"
            raise PlacementError(f"{error}{advice}") from error
        on_stage(f"write {options.output}")
        if is_neff:
            neff.save(whole_neff(library, Path(options.model).stem), options.output)
        else:
            library.export_library(options.output)
    print(f"{options.output}: {report(library).headline()}")


def _target(device: str) -> dict[str, Any]:
    """The target of a chip, or of a device description in a file."""
    return {"kind": "llvm", "keys": ["neuron", "cpu"], "device": f"neuron/{device}" if device in CHIPS else device}


def _output(text: str) -> str:
    path = Path(text)
    if path.suffix not in (".neff", ".so"):
        raise argparse.ArgumentTypeError(f"'{text}' must end in .neff or .so")
    if not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder '{path.parent}'")
    return text
