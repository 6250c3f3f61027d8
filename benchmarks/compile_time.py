"""From an ONNX file to a library: ResNet-50 for `neuron`, and for the CPU by TVM alone.

`python -m benchmarks.compile_time`
"""

import math
import re
import subprocess
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import tvm
from tvm.relax.frontend.onnx import from_onnx

from benchmarks.row import Row, side_by_side
from tvm_neuron import relay
from tvm_neuron.frontend.sample_models import light_network

BAR_SECONDS = 20.0
_COMPILE_AND_TELL = """
import pathlib
from tvm_neuron.cli.main import main
main()
status = pathlib.Path("/proc/self/status")
print(status.read_text() if status.exists() else "")
"""


def measure(repeats: int = 3) -> list[Row]:
    """The time of both, and the most memory that `neuron-cc compile` takes."""
    with TemporaryDirectory() as folder:
        model_file = Path(folder, "resnet50.onnx")
        onnx.save(light_network("resnet50"), model_file)
        calls = (
            (lambda: compile_for_neuron(model_file, Path(folder, "neuron.so")), 1),
            (lambda: compile_for_cpu(model_file, Path(folder, "cpu.so")), 1),
        )
        ours, theirs = side_by_side(calls, repeats)
        peak_mb = peak_memory_mb(model_file, Path(folder, "resnet50.neff"))
        size_mb = model_file.stat().st_size / 1e6
    return [
        Row(
            what="ResNet-50: ONNX file to library", unit="s", samples=ours,
            peer="tvm.compile for llvm", peer_samples=theirs, bar=BAR_SECONDS,
        ),
        Row(
            what="ResNet-50: most memory while compiling", unit="MB", samples=(peak_mb,),
            peer="size of the ONNX file", peer_samples=(size_mb,),
        ),
    ]  # fmt: skip


def compile_for_neuron(model_file: Path, library_file: Path) -> None:
    """Import, build, export."""
    mod, params = relay.frontend.from_onnx(model_file)
    relay.build(mod, target="neuron", params=params).export_library(library_file)


def compile_for_cpu(model_file: Path, library_file: Path) -> None:
    """The same with what TVM has: its importer, its default pipeline, its export."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unused initializers
        mod = from_onnx(onnx.load(model_file))
    tvm.compile(mod, target="llvm").export_library(str(library_file))


def peak_memory_mb(model_file: Path, neff_file: Path) -> float:
    """The largest resident size of a `neuron-cc compile` process; NaN where there is no /proc."""
    command = [sys.executable, "-c", _COMPILE_AND_TELL, "compile", model_file, "--output", neff_file, "--cache", "off"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"^VmHWM:\s+(\d+) kB", told, re.MULTILINE)
    return int(found[1]) * 1024 / 1e6 if found else math.nan


if __name__ == "__main__":
    from benchmarks.table import show

    show(measure())
