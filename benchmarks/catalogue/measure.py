"""One exported network on one chip: where it runs, how long, how far from onnxruntime; what compiling takes.

What is known so far is written into the job's file after each step, so that it outlives a crash.
"""

import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

import tvm_neuron
import tvm_neuron.codegen.function
from benchmarks.catalogue.products import multiplications
from benchmarks.catalogue.reference import FINER, Reference
from tvm_neuron import relay
from tvm_neuron.errors import InternalError, NeuronError

LONGEST_MESSAGE = 300
PRODUCTS = frozenset({"Attention", "Conv", "ConvTranspose", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "RNN"})


@dataclass(frozen=True)
class Job:
    """`folder` is an exporter's; `only_time`: nothing is run."""

    folder: Path
    chip: str
    only_time: bool
    file: Path


class Results:
    """A dictionary that is a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.known: dict[str, Any] = {}

    def add(self, **values: Any) -> None:
        """Writes all that is known."""
        self.known |= values
        self.file.write_text(json.dumps(self.known))


def measure(job: Job) -> None:
    """Compiles, asks the clock, runs; then again with all of it in float32."""
    results = Results(job.file)
    try:
        model = onnx.load(job.folder / "model.onnx")
        library = _compile(model, job.chip, None, results)
        report = tvm_neuron.report(library)
        on_cpu = report.placed("cpu")
        results.add(
            operators_on_core=len(report.placed("neuroncore")), operators_on_cpu=len(on_cpu),
            cpu_operators=dict(Counter(row.op for row in on_cpu).most_common()),
            cpu_reasons=dict(Counter(row.reason[:LONGEST_MESSAGE] for row in on_cpu).most_common(5)),
            latency_us=report.latency_us, roofline_us=report.roofline_us, macs=report.macs,
            dram_bytes=report.dram_bytes, pe_utilisation=report.pe_utilisation, instructions=report.instructions,
        )  # fmt: skip
        if any(row.op in PRODUCTS for row in on_cpu):
            left = multiplications(model, {row.name for row in on_cpu})
            results.add(macs_on_cpu=left)
        if not job.only_time:
            _run(job, model, library, results)
        results.add(outcome="built")
    except MemoryError:
        results.add(outcome="out of memory")
    except Exception as error:
        is_refusal = isinstance(error, NeuronError) and not isinstance(error, InternalError)
        message = str(error).strip() or type(error).__name__
        kind = "refused" if is_refusal else "failed"
        at = "" if is_refusal else f"{type(error).__name__}: "
        results.add(outcome=kind, message=f"{at}{message}"[:LONGEST_MESSAGE])


def _compile(model: onnx.ModelProto, chip: str, options: Any, results: Results) -> relay.ExecutorFactory:
    before, begin = _peak_bytes("VmRSS"), time.process_time()
    mod, params = relay.frontend.from_onnx(model)
    library = relay.build(mod, target=f"neuron/{chip}", params=params, options=options)
    if options is None:
        taken = time.process_time() - begin
        results.add(compile_seconds=taken, peak_bytes=_peak_bytes("VmHWM") - before)
    return library


def _run(job: Job, model: onnx.ModelProto, library: relay.ExecutorFactory, results: Results) -> None:
    reference = Reference.load(job.folder)
    error, bound = reference.worst(_outputs(library, reference))
    results.add(error=error, bound=bound)
    exactly = tvm_neuron.BuildOptions(fp32_cast="none")
    library = _compile(model, job.chip, exactly, results)
    error, bound = reference.worst(_outputs(library, reference), FINER)
    results.add(error_fp32=error, bound_fp32=bound)


def _outputs(library: relay.ExecutorFactory, reference: Reference) -> list[Any]:
    executor = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    executor.run(**reference.inputs)
    return [executor.get_output(number).numpy() for number in range(len(reference.exact))]


def _peak_bytes(name: str) -> int:
    """Memory of this process, now (VmRSS) or at most (VmHWM); 0 where there is no /proc."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0) * 1024
