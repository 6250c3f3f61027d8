"""The hardware model's own speed: a run with data, the clock alone and memory, beside onnxruntime in float32.

`python -m benchmarks.run_time`
"""

import math
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
import tvm

import tvm_neuron
from benchmarks.row import Row, seconds, side_by_side
from tests.codegen.transformers import Encoder
from tests.models.zoo import NETWORKS
from tvm_neuron import neff, relay, sim
from tvm_neuron.frontend.sample_models import light_network

BAR_RATIO = 5.0
BAR_CLOCK_SECONDS = 1.0
BAR_MEMORY_RATIO = 3.0
PEER = "onnxruntime fp32, 2 threads"
_ROUNDS = 3
_RUN_AND_TELL = """
import pathlib, sys
import numpy as np, tvm, tvm_neuron.runtime
status = pathlib.Path("/proc/self/status")
before = status.read_text() if status.exists() else ""
run = tvm.runtime.load_module(sys.argv[1])["default"](tvm.cpu())
for info in run.inputs:
    run.set_input(info.name, np.zeros(info.shape, info.dtype))
run.run()
print(before + (status.read_text() if status.exists() else ""))
"""


@dataclass(frozen=True)
class Subject:
    """A network that is run."""

    name: str
    make: Callable[[], onnx.ModelProto]


SUBJECTS = (
    Subject("ResNet-50", partial(light_network, "resnet50")),
    Subject("VGG-16", NETWORKS["vgg16"]),
    Subject("BERT-base encoder", Encoder(hidden=768, heads=12, rows=128, layers=12).model),
)


def measure(repeats: int = 9) -> list[Row]:
    """All rows of every network."""
    return [row for subject in SUBJECTS for row in measure_one(subject, repeats)]


def measure_one(subject: Subject, repeats: int) -> list[Row]:
    """The data of a run (loop nests at once), the first run, which also plans the nests, the clock, and memory.

    Of three rounds, that in which the peer was quickest counts: the quietest, and the least flattering.
    """
    model = subject.make()
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target="neuron", params=params)
    executor = library["default"](tvm.cpu())
    session = make_session(model.SerializeToString())
    random = np.random.default_rng(0)
    feed = {x.name: random.standard_normal(x.shape, dtype=np.float32) for x in session.get_inputs()}
    executor.set_inputs(feed)
    first = seconds(executor.run)
    session.run(None, feed)
    calls = ((executor.run, 1), (lambda: session.run(None, feed), 5))
    rounds = [side_by_side(calls, repeats) for _ in range(_ROUNDS)]
    ours, theirs = min(rounds, key=lambda samples: statistics.median(samples[1]))
    programs = [neff.read(data) for data in tvm_neuron.runtime.neffs(library).values()]
    clock = [seconds(lambda: [sim.time_program(p.program, p.device) for p in programs]) for _ in range(repeats)]
    report = [seconds(lambda: tvm_neuron.report(library)) for _ in range(repeats)]
    model_mb = len(model.SerializeToString()) / 1e6
    return [
        Row(
            what=f"{subject.name}: one run on the model", unit="ms", samples=in_ms(ours),
            peer=PEER, peer_samples=in_ms(theirs), bar=BAR_RATIO, is_bar_a_ratio=True,
        ),
        Row(what=f"{subject.name}: the first run", unit="ms", samples=in_ms((first,))),
        Row(
            what=f"{subject.name}: the clock alone", unit="ms", samples=in_ms(tuple(clock)),
            bar=BAR_CLOCK_SECONDS * 1e3,
        ),
        Row(what=f"{subject.name}: the clock and the report", unit="ms", samples=in_ms(tuple(report))),
        Row(
            what=f"{subject.name}: memory of a run", unit="MB", samples=(memory_mb(library),),
            peer="size of the ONNX file", peer_samples=(model_mb,), bar=BAR_MEMORY_RATIO, is_bar_a_ratio=True,
        ),
    ]  # fmt: skip


def memory_mb(library: relay.ExecutorFactory) -> float:
    """What a process that loads the library and runs it takes at most, beyond what it had when TVM was imported.

    NaN where there is no /proc.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder, "library.so")
        library.export_library(file)
        command = [sys.executable, "-c", _RUN_AND_TELL, file]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    sizes = {kind: re.findall(rf"^{kind}:\s+(\d+) kB", told, re.MULTILINE) for kind in ("VmRSS", "VmHWM")}
    if not sizes["VmRSS"]:
        return math.nan
    return (int(sizes["VmHWM"][-1]) - int(sizes["VmRSS"][0])) * 1024 / 1e6


def make_session(model: bytes) -> onnxruntime.InferenceSession:
    """onnxruntime on two threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(model, options)


def in_ms(samples: tuple[float, ...]) -> tuple[float, ...]:
    """Seconds as milliseconds."""
    return tuple(sample * 1e3 for sample in samples)


if __name__ == "__main__":
    from benchmarks.table import show

    show(measure())
