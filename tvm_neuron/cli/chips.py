"""neuron-cc chips: one model, or one kernel written by hand, compiled for several chips: time, bound, where it runs.

Examples:
  neuron-cc chips model.onnx
  neuron-cc chips model.onnx --targets inf2 trn2 my_chip.json --json
  neuron-cc chips kernels.py:softmax --input x.npz
  neuron-cc chips kernels.py:product --input x.npz --cast float8_e4m3

A kernel is Python of your own and is run as such; the arrays of --input are its arguments, by their names.
"""

import argparse
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ml_dtypes import bfloat16
from rich.console import Console
from rich.table import Table

from tvm_neuron.cli import source
from tvm_neuron.cli.arrays import read_npz
from tvm_neuron.cli.io_config import read_io_config
from tvm_neuron.errors import ModelError, NeuronError, OptionError
from tvm_neuron.hw import CHIPS, Device, load_device
from tvm_neuron.isa.dtypes import DTYPES, FLOAT8, MATMUL_DTYPES

NAME = "chips"
FLOATS = ("float32", *MATMUL_DTYPES, *FLOAT8)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    source.add_model(parser)
    parser.add_argument("--input", metavar="FILE", help="a kernel's arguments, .npz")
    parser.add_argument("--cast", choices=FLOATS, help="a kernel's floating-point arguments in this dtype")
    parser.add_argument("--targets", nargs="+", default=list(CHIPS), metavar="CHIP", help=f"all of {', '.join(CHIPS)}")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> None:
    """Prints a row for each chip; one that can't run it says why.

    Raises:
        NeuronError: the model or kernel can't be read, or there is no such device.
    """
    devices = [load_device(target) for target in options.targets]
    measure = _of_kernel(options) if ".py:" in options.model else _of_model(options)
    rows = []
    for target, device in zip(options.targets, devices, strict=True):
        try:
            rows.append({"chip": device.name} | measure(source.device_name(target), device))
        except NeuronError as error:
            rows.append({"chip": device.name, "refused": str(error)})
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        _print(rows)


def _of_model(options: argparse.Namespace) -> Callable[[str, Device], dict[str, Any]]:
    from tvm_neuron import relay
    from tvm_neuron.codegen.options import BuildOptions
    from tvm_neuron.runtime import report

    source.check_framework(options)
    for name in ("input", "cast"):
        if value := getattr(options, name):
            raise OptionError(f"--{name} {value}: it is for a kernel, FILE.py:NAME; a model's time has no inputs")
    mod, params = source.read_model(Path(options.model), read_io_config(options.io_config))

    def measure(name: str, _device: Device) -> dict[str, Any]:
        found = report(relay.build(mod, params=params, options=BuildOptions(device=name)))
        placed = {where: len(found.placed(where)) for where in ("neuroncore", "cpu")}
        return {
            "latency_us": found.latency_us, "bound_us": found.bound_us, "pe_utilisation": found.pe_utilisation,
            "dram_bytes": found.dram_bytes, "operators": placed,
        }  # fmt: skip

    return measure


def _of_kernel(options: argparse.Namespace) -> Callable[[str, Device], dict[str, Any]]:
    from tvm_neuron.nki import Kernel, jit

    path, _, name = options.model.rpartition(":")
    if not options.input:
        raise OptionError(f"{options.model}: a kernel needs its arguments, --input FILE.npz")
    function = getattr(_module(Path(path)), name, None)
    if function is None:
        raise ModelError(f"'{path}' has no kernel '{name}'")
    kernel: Kernel = jit(function)
    arguments = read_npz(options.input)
    if options.cast:
        wide = {name: each for name, each in arguments.items() if each.dtype.kind == "f" or each.dtype == bfloat16}
        arguments |= {name: each.astype(DTYPES[options.cast]) for name, each in wide.items()}

    def measure(name: str, device: Device) -> dict[str, Any]:
        traced = kernel.on(name).trace(**arguments)
        timing, latency_us, cores = traced.time(), traced.latency_ps() / 1e6, max(1, len(traced.by_core))
        return {
            "latency_us": latency_us,
            "pe_utilisation": timing.macs / (cores * device.peak_macs_per_second) * 1e6 / latency_us,
            "dram_bytes": timing.dram_bytes,
            "busy_us": {queue: ps / 1e6 for queue, ps in timing.busy_ps.items()},
        }

    return measure


def _module(path: Path) -> Any:
    """A file of Python, run."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ModelError(f"'{path}' can't be read: it is no file of Python")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ModelError(f"'{path}' can't be run: {type(error).__name__}: {error}") from error
    return module


def _print(rows: list[dict[str, Any]]) -> None:
    table = Table("chip", "us", "bound us", "PE utilisation", "DRAM MB", "operators on the core", "on the CPU")
    for row in rows:
        if "refused" in row:
            continue
        operators = row.get("operators", {})
        table.add_row(
            row["chip"], f"{row['latency_us']:,.1f}", f"{row['bound_us']:,.1f}" if "bound_us" in row else "",
            f"{row['pe_utilisation']:.1%}", f"{row['dram_bytes'] / 1e6:,.2f}",
            *(str(operators.get(where, "")) for where in ("neuroncore", "cpu")),
        )  # fmt: skip
    Console().print(table)
    for row in rows:
        if "refused" in row:
            print(f"{row['chip']}: {row['refused']}")
