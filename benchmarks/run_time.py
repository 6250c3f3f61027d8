"""The hardware model's own speed: a run with data, the clock alone and memory, beside onnxruntime in float32."""

import math
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
import tvm

import tvm_neuron
from benchmarks.row import Bar, Row, seconds, side_by_side
from tests.codegen.transformers import Encoder
from tests.models.zoo import NETWORKS
from tvm_neuron import neff, relay, sim
from tvm_neuron.frontend.sample_models import light_network

OF_PEER = Bar(5, is_ratio=True)
MS_OF_CLOCK = Bar(1000)
OF_WEIGHTS = Bar(3, is_ratio=True)
PEER = "onnxruntime fp32, 2 threads"
_ROUNDS, _REPEATS = 3, 5
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


SUBJECTS: dict[str, Callable[[], onnx.ModelProto]] = {
    "ResNet-50": partial(light_network, "resnet50"),
    "VGG-16": NETWORKS["vgg16"],
    "BERT-base encoder": Encoder(hidden=768, heads=12, rows=128, layers=12).model,
}


def measure(network: str) -> list[Row]:
    """The data of a run (loop nests at once), the first run, which also plans the nests, the clock, and memory.

    Of three rounds, that in which the peer was quickest counts: the quietest, and the least flattering.
    """
    model = SUBJECTS[network]()
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
    rounds = [side_by_side(calls, _REPEATS) for _ in range(_ROUNDS)]
    ours, theirs = min(rounds, key=lambda samples: statistics.median(samples[1]))
    programs = [neff.read(data) for data in tvm_neuron.runtime.neffs(library).values()]
    clock = [seconds(lambda: [sim.time_program(p.program, p.device) for p in programs]) for _ in range(_REPEATS)]
    report = [seconds(lambda: tvm_neuron.report(library)) for _ in range(_REPEATS)]
    model_mb = len(model.SerializeToString()) / 1e6
    return [
        Row(
            what=f"{network}: one run on the model", unit="ms", samples=in_ms(ours),
            peer=PEER, peer_samples=in_ms(theirs), bar=OF_PEER,
        ),
        Row(what=f"{network}: the first run", unit="ms", samples=in_ms((first,))),
        Row(what=f"{network}: the clock alone", unit="ms", samples=in_ms(tuple(clock)), bar=MS_OF_CLOCK),
        Row(what=f"{network}: the clock and the report", unit="ms", samples=in_ms(tuple(report))),
        Row(
            what=f"{network}: memory of a run", unit="MB", samples=(memory_mb(library),),
            peer="size of the ONNX file", peer_samples=(model_mb,), bar=OF_WEIGHTS,
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
