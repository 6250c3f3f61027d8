"""From an ONNX file to a library: `neuron-cc compile`, beside IREE and `tvm.compile` for the CPU; time and memory.

Rows beside IREE need the extra `bench`.
"""

import gc
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from benchmarks import iree
from benchmarks.row import Bar, Row, seconds, side_by_side
from tests.codegen.transformers import Encoder
from tests.models.zoo.yolo import yolov4
from tvm_neuron.frontend.sample_models import light_network

OF_IREE = Bar(0.5, is_ratio=True)
SECONDS_OF_LARGE = Bar(60)
OF_WEIGHTS = Bar(3, is_ratio=True)
_REPEATS = 2
_COMPILE_AND_TELL = """
import pathlib, sys
import tvm_neuron.codegen.function, tvm_neuron.relay
from tvm_neuron.cli.main import main

def kilobytes(name):
    status = pathlib.Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)

before = kilobytes("VmRSS")
code = main()
print((kilobytes("VmHWM") - before) * 1024)
sys.exit(code)
"""
_TVM = """
import sys, warnings
import onnx, tvm
from tvm.relax.frontend.onnx import from_onnx
warnings.simplefilter("ignore")
tvm.compile(from_onnx(onnx.load(sys.argv[1])), target="llvm").export_library(sys.argv[2])
"""


def resnet50() -> onnx.ModelProto:
    """ResNet-50 with random weights, in a version of the file format that all importers take."""
    model = light_network("resnet50")
    model.ir_version = 8
    return model


COMPARED: dict[str, Callable[[], onnx.ModelProto]] = {
    "ResNet-50": resnet50,
    "BERT-base": lambda: Encoder(hidden=768, heads=12, rows=128, layers=12).model(),
}
LARGE: dict[str, Callable[[], onnx.ModelProto]] = {
    "BERT-large": lambda: Encoder(hidden=1024, heads=16, rows=128, layers=24).model(),
    "YOLOv4 at 608": lambda: yolov4(608),
}

NETWORKS = COMPARED | LARGE


def measure(network: str) -> list[Row]:
    """Whole processes, each from its start, so that all pay for starting."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        if network in LARGE:
            return list(large(network, save(LARGE[network], folder)))
        return list(compared(network, save(COMPARED[network], folder)))


def compared(network: str, model_file: Path) -> Iterator[Row]:
    """One network beside the others, from the cache, and its memory."""
    folder = model_file.parent
    peaks: list[float] = []
    calls: dict[str, Callable[[], object]] = {
        "neuron": lambda: peaks.append(compile_for_neuron(model_file)),
        "tvm.compile, llvm": partial(compile_by_tvm, model_file, folder / "tvm.so"),
    }
    if iree.is_installed():
        calls[iree.NAME] = partial(iree.compile_for_cpu, model_file, folder / "iree.vmfb")
    taken = dict(zip(calls, side_by_side([(call, 1) for call in calls.values()], _REPEATS), strict=True))
    what, ours = f"{network}: ONNX file to library", taken.pop("neuron")
    for peer, theirs in taken.items():
        bar = OF_IREE if peer == iree.NAME else None
        yield Row(what=what, unit="s", samples=ours, peer=peer, peer_samples=theirs, bar=bar)
    cached = partial(compile_for_neuron, model_file, folder / "cache")
    cached()
    again = tuple(seconds(cached) for _ in range(_REPEATS))
    yield Row(what=f"{network}: again, from the cache", unit="s", samples=again, peer="without", peer_samples=ours)
    yield memory(network, model_file, peaks)


def large(network: str, model_file: Path) -> Iterator[Row]:
    """A large network: once, and its memory."""
    peaks: list[float] = []
    taken = seconds(lambda: peaks.append(compile_for_neuron(model_file)))
    yield Row(what=f"{network}: ONNX file to library", unit="s", samples=(taken,), bar=SECONDS_OF_LARGE)
    yield memory(network, model_file, peaks)


def save(make: Callable[[], onnx.ModelProto], folder: Path) -> Path:
    """The network as a file."""
    path = folder / "model.onnx"
    onnx.save(make(), path)
    gc.collect()
    return path


def compile_for_neuron(model_file: Path, cache: Path | str = "off") -> float:
    """`neuron-cc compile`; the MB that it takes at most besides Python and TVM, NaN where there is no /proc."""
    output = model_file.with_name("neuron.so")
    words = ["compile", model_file, "--output", output, "--cache", cache, "--verbose", "error"]
    command = [sys.executable, "-c", _COMPILE_AND_TELL, *words]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(told.splitlines()[-1]) / 1e6 or math.nan


def compile_by_tvm(model_file: Path, library_file: Path) -> None:
    """The same with what TVM has: its importer, its default pipeline, its export."""
    subprocess.run([sys.executable, "-c", _TVM, model_file, library_file], check=True, capture_output=True)


def memory(network: str, model_file: Path, peaks: Sequence[float]) -> Row:
    """What compiling took at most, beside the weights."""
    return Row(
        what=f"{network}: memory of compiling", unit="MB", samples=tuple(peaks), peer="size of the ONNX file",
        peer_samples=(model_file.stat().st_size / 1e6,), bar=OF_WEIGHTS,
    )  # fmt: skip
