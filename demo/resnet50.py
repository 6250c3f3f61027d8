"""ResNet-50 from ONNX to a library, run on the modelled NeuronCore in a new process, compared with onnxruntime.

`python demo/resnet50.py [--target neuron/inf2] [--batch 4] [--top 20]`
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import tvm
from rich.console import Console
from rich.table import Table

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.cli.progress import OnStage, stages
from tvm_neuron.frontend.sample_models import light_network
from tvm_neuron.profile.tables import render

BOUND = 0.03
"""The relative L2 error that is allowed. Weights and activations are rounded to bfloat16, 0.11 % RMS each time;
over some 50 layers in a row that grows to sqrt(2 * 50) * 0.11 % = 1.1 %, plus what softmax makes of it."""

PAGE = Path(__file__).parents[1] / "build" / "resnet50.html"
RUN_LIBRARY = Path(__file__).with_name("run_library.py")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo; returns 1 if the outputs disagree."""
    parser = argparse.ArgumentParser(description="ResNet-50 on the modelled NeuronCore")
    parser.add_argument("--target", default="neuron", help="neuron (which is neuron/inf1), neuron/inf2, ...")
    parser.add_argument("--batch", type=int, default=1, help="images at once (1)")
    parser.add_argument("--top", type=int, default=10, help="layers to show, slowest first (10)")
    options = parser.parse_args(arguments)
    console = Console()

    with tempfile.TemporaryDirectory() as folder, stages("demo") as on_stage:
        on_stage("make the model: ResNet-50 with seeded random weights")
        model = light_network("resnet50", seed=0, batch=options.batch)
        x = np.random.default_rng(0).standard_normal((options.batch, 3, 224, 224), dtype=np.float32)
        library_file = Path(folder, "resnet50.so")
        start = time.perf_counter()
        compile_model(model, options.target, library_file, on_stage)
        seconds = time.perf_counter() - start
        on_stage("run in a new process")
        actual = run_in_new_process(library_file, x)
        on_stage("run with onnxruntime")
        expected = run_with_onnxruntime(model, x)
        on_stage("report")
        report = tvm_neuron.report(tvm.runtime.load_module(str(library_file)))

    console.print(f"ResNet-50, batch {options.batch}: from ONNX to a library in {seconds:.1f} s")
    console.print(render(report, options.top))
    if not report.placed("cpu"):
        console.print("On the CPU: nothing")
    error = float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))
    console.print(top5(actual[0], expected[0]))
    console.print(f"relative L2 error against onnxruntime in float32: {error:.2%} (allowed: {BOUND:.1%})")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(report.to_html(f"ResNet-50, batch {options.batch}"), "utf-8")
    console.print(f"all of the report as a page for a browser: {os.path.relpath(PAGE)}")
    if not error <= BOUND:  # so that NaN fails too
        print(f"demo: error: the output is off by {error:.2%}, more than {BOUND:.1%}", file=sys.stderr)
        return 1
    return 0


def compile_model(model: onnx.ModelProto, target: str, library_file: Path, on_stage: OnStage) -> None:
    """From ONNX to a shared library; the three calls that a user needs."""
    on_stage("import")
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target=target, params=params, options=tvm_neuron.BuildOptions(on_stage=on_stage))
    on_stage("export")
    library.export_library(library_file)


def run_in_new_process(library_file: Path, x: np.ndarray) -> np.ndarray:
    """The output for `x`, from a process that has the library, the runtime and nothing else."""
    folder = library_file.parent
    np.save(folder / "x.npy", x)
    subprocess.run([sys.executable, RUN_LIBRARY, library_file, folder / "x.npy", folder / "y.npy"], check=True)
    return np.load(folder / "y.npy")


def run_with_onnxruntime(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """The reference, in float32."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def top5(actual: np.ndarray, expected: np.ndarray) -> Table:
    """The five likeliest classes of the first image, as both see them."""
    table = Table(title="Top 5 of the first image", title_justify="left")
    for name in ("NeuronCore model", "onnxruntime"):
        table.add_column(name, justify="right")
    ranks = zip(np.argsort(-actual)[:5], np.argsort(-expected)[:5], strict=True)
    for ours, theirs in ranks:
        table.add_row(f"class {ours}: {actual[ours]:.2%}", f"class {theirs}: {expected[theirs]:.2%}")
    return table


if __name__ == "__main__":
    sys.exit(main())
