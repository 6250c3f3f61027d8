"""neuron-cc compile: from a model to a NEFF, or to a library where some of it runs on the CPU.

Examples:
  neuron-cc compile model.onnx --output model.neff
  neuron-cc compile model.onnx --target inf2 --fp32-cast matmult-fp16 --output model.neff
  neuron-cc compile yolo.onnx --output yolo.so
  neuron-cc compile bert.onnx --io-config '{"inputs": {"ids": [[1, 128], "int64"]}}' --output bert.so \\
      --bucket '{"inputs": {"ids": [[1, 384], "int64"]}}'

A .neff is one program of a NeuronCore, so every operator must run there. A .so holds parts for the CPU as well.
"""

import argparse
import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tvm_neuron.bundle import Request
from tvm_neuron.bundle.request import SUFFIXES
from tvm_neuron.cli import cached, choices, log, retired, source
from tvm_neuron.cli.io_config import read_io_config
from tvm_neuron.cli.memory import return_freed_memory
from tvm_neuron.cli.output import check_path, written_aside
from tvm_neuron.codegen.collector import seldom_collected
from tvm_neuron.errors import InternalError, OptionError, PlacementError
from tvm_neuron.hw import load_device

NAME = "compile"
FAST_LOADING = "--enable-fast-loading-neuron-binaries"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    source.add_arguments(parser)
    parser.add_argument(
        "--output", type=_output, default="out.neff", metavar="FILE", help=".neff, or .so to let parts run on the CPU"
    )
    parser.add_argument("--compress", action="store_true", help="write a .neff a fifth smaller and slower to load")
    parser.add_argument(FAST_LOADING, action="store_true", help="write it uncompressed, as is done without --compress")
    choices.add_arguments(parser)
    parser.add_argument(
        "--bucket",
        action="append",
        default=[],
        metavar="JSON",
        help="more shapes for the same .so, in the form of --io-config; any number of times. It chooses when it runs",
    )
    cached.add_arguments(parser.add_argument_group("the cache"))
    told = parser.add_argument_group("what is told")
    log.add_arguments(told)
    told.add_argument(
        "--bundle-weights", action="store_true", help="put the weights into the bundle that an internal error writes"
    )
    told.add_argument("--json", action="store_true", help="print the summary of what was made as JSON")


def run(options: argparse.Namespace) -> None:
    """Compiles and writes the output, whole or not at all.

    Raises:
        NeuronError: the model can't be read, placed or compiled, or the output not be written.
    """
    retired.tell(options.retired)
    return_freed_memory()
    with seldom_collected(), log.log("compile", options) as told:
        request, output = requested(options), Path(options.output)
        entry = cached.find(options, request, told.stage)
        with written_aside(output) as made:
            kept = entry.fetch(made) if entry is not None else None
            on_defect = partial(write_bundle, options)
            summary = kept or make(Path(options.model), request, made, told.stage, on_defect)
        if kept is not None:
            for text in kept["warnings"]:
                told.warning(text)
        elif entry is not None and not told.has_defect:  # of which is to be told again
            entry.keep(output, summary | {"warnings": told.warnings})
        for row in summary["report"]["placement"]:
            reason = f": {row['reason']}" if row["reason"] else ""
            told.detail(f"{row['name']} ({row['op']}): {row['where']}{reason}")
        names = [row["name"] for row in summary["report"]["placement"]]
        choices.warn_of_idle_patterns(request.options, names, told.warning)
    text = json.dumps(summary["report"], indent=2) if options.json else f"{options.output}: {summary['headline']}"
    print(text)


def requested(options: argparse.Namespace) -> Request:
    """What the command line asks for.

    Raises:
        NeuronError: it contradicts itself, or what it names does not exist.
    """
    device = load_device(options.target)
    is_neff = options.output.endswith(".neff")
    if is_neff and options.dynamic_batch:
        raise OptionError("--dynamic-batch: a .neff has one batch size; write a library, --output FILE.so")
    if is_neff and options.bucket:
        raise OptionError("--bucket: a .neff has one set of shapes; write a library, --output FILE.so")
    if options.compress and not is_neff:
        raise OptionError("--compress: it is for a .neff; write one, --output FILE.neff, or leave the option out")
    if options.compress and options.enable_fast_loading_neuron_binaries:
        raise OptionError(f"--compress makes a .neff slower to load and {FAST_LOADING} quicker: leave one of them out")
    source.check_framework(options)
    chosen = replace(choices.as_build_options(options), device=source.device_name(options.target))
    return Request(
        suffix=Path(options.output).suffix,
        compress=options.compress,
        inputs=tuple(read_io_config(each) for each in (options.io_config, *options.bucket)),
        options=chosen,
        device=device,
    )


def make(
    model: Any, request: Request, output: Path, on_stage: Callable[[str], None],
    on_defect: Callable[[InternalError], str],
) -> cached.Summary:  # fmt: skip
    """Compiles a model, the path of a file or a ModelProto, and writes the output; the listeners: see BuildOptions.

    Raises:
        NeuronError: the model can't be read, placed or compiled, or the output not be written.
    """
    from tvm_neuron import neff, relay
    from tvm_neuron.cli.artifact import whole_neff
    from tvm_neuron.runtime import report

    name = model.stem if isinstance(model, Path) else "model"
    on_stage(f"import {model if isinstance(model, Path) else name}")
    imports = [source.read_model(model, inputs) for inputs in request.inputs]
    is_neff = request.suffix == ".neff"
    must_compile = request.options.must_compile or is_neff
    chosen = replace(request.options, must_compile=must_compile, on_stage=on_stage, on_defect=on_defect)
    try:
        if len(imports) > 1:
            library = relay.build_buckets(imports, options=chosen)
        else:
            library = relay.build(imports[0][0], params=imports[0][1], options=chosen)
        del imports  # the library holds the weights as the device takes them; writing it needs the memory
    except PlacementError as error:
        advice = "" if request.options.must_compile else "\nto run them on the CPU, write a library: --output FILE.so"
        raise PlacementError(f"{error}{advice}") from error
    on_stage(f"write {output.name}")
    writing: AbstractContextManager[None] = nullcontext()
    if is_neff:
        neff.save(whole_neff(library, name), output, request.compress)
    else:
        writing = library.exporting(output)
    with writing:
        found = report(library)
        more = [f"\n  bucket {n}: {report(library, n).headline()}" for n in range(1, len(request.inputs))]
    return {"headline": found.headline() + "".join(more), "report": found.to_dict()}


def write_bundle(options: argparse.Namespace, error: Exception) -> str:
    """Writes what it takes to see an error of this command line again into the working directory; gives the path."""
    import onnx

    from tvm_neuron.bundle import archive  # here, since it brings onnx with it

    request = requested(options)
    model = source.as_onnx(Path(options.model), request.inputs[0])
    proto = onnx.load(model) if isinstance(model, Path) else model
    return str(archive.write_bundle(error, request, proto, options.bundle_weights))


def _output(text: str) -> str:
    if Path(text).suffix not in SUFFIXES:
        raise argparse.ArgumentTypeError(f"'{text}' must end in .neff or .so")
    check_path(text)
    return text
