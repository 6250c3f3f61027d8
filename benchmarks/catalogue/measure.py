"""One exported network on one chip: where it runs, how long, how far from onnxruntime; what compiling takes.

What is known so far is written into the job's file after each step, so that it outlives a crash. Of a model whose sizes
a run tells, as a detector's, stages are compiled while it runs: that run counts as compiling.
"""

import json
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import tvm

import tvm_neuron.codegen.function  # noqa: F401 - loaded before compiling is timed
from benchmarks.catalogue.products import multiplications
from benchmarks.catalogue.reference import Reference
from tvm_neuron import BuildOptions, build_options, relay
from tvm_neuron.errors import InternalError, NeuronError, NeuronWarning
from tvm_neuron.relay.compiled import is_open

LONGEST_MESSAGE = 300


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
        reference = Reference.load(job.folder)
        defects: list[str] = []
        machine = _timed(model, job.chip, reference, results, defects)
        _report(model, machine, results)
        if not job.only_time:
            error, bound = reference.worst(_outputs(machine, reference))
            results.add(error=error, bound=bound)
        results.add(outcome="defect" if defects else "built", message="; ".join(defects))
    except Exception as error:
        results.add(**_told(error))
        return
    if not job.only_time:
        _measure_exactly(model, job.chip, reference, results)


def _timed(
    model: onnx.ModelProto, chip: str, reference: Reference, results: Results, defects: list[str]
) -> relay.vm.VirtualMachine:
    before, begin = _peak_bytes("VmRSS"), time.process_time()
    machine = _compile(model, chip, reference, BuildOptions(on_defect=partial(_keep, defects)))
    results.add(compile_seconds=time.process_time() - begin, peak_bytes=_peak_bytes("VmHWM") - before)
    return machine


def _report(model: onnx.ModelProto, machine: relay.vm.VirtualMachine, results: Results) -> None:
    report = machine.report
    on_cpu = report.placed("cpu")
    results.add(
        operators_on_core=len(report.placed("neuroncore")), operators_on_cpu=len(on_cpu),
        cpu_operators=dict(Counter(row.op for row in on_cpu).most_common()),
        cpu_reasons=dict(Counter(row.reason[:LONGEST_MESSAGE] for row in on_cpu).most_common(5)),
        latency_us=report.latency_us, roofline_us=report.roofline_us, bound_us=report.bound_us, macs=report.macs,
        macs_on_cpu=multiplications(model, {row.name for row in on_cpu}), dram_bytes=report.dram_bytes,
        pe_utilisation=report.pe_utilisation, instructions=report.instructions,
    )  # fmt: skip


def _measure_exactly(model: onnx.ModelProto, chip: str, reference: Reference, results: Results) -> None:
    """The same in float32, whose errors leave less room for mistakes to hide."""
    try:
        exactly = BuildOptions(fp32_cast="none", on_defect=partial(_keep, []))
        machine = _compile(model, chip, reference, exactly)
        error, bound = reference.worst_in_float32(_outputs(machine, reference), model)
        results.add(error_fp32=error, bound_fp32=bound)
    except Exception as error:
        results.add(**{f"{name}_fp32": text for name, text in _told(error).items()})


def _compile(
    model: onnx.ModelProto, chip: str, reference: Reference, options: BuildOptions
) -> relay.vm.VirtualMachine:
    with warnings.catch_warnings(), build_options(options):
        warnings.simplefilter("ignore", NeuronWarning)  # defects are recorded, and the placement is
        mod, params = relay.frontend.from_onnx(model)
        executable = relay.vm.compile(mod, target=f"neuron/{chip}", params=params)
        machine = relay.vm.VirtualMachine(executable, tvm.cpu())
        if is_open(mod):
            machine.run(**reference.inputs)
        return machine


def _keep(defects: list[str], error: InternalError) -> str:
    defects.append(f"{error.code}: {error}"[:LONGEST_MESSAGE])
    return "the catalogue"


def _told(error: Exception) -> dict[str, str]:
    """What becomes of a build that fails: refused by what a user may do about, or failed by a mistake of ours."""
    if isinstance(error, MemoryError):
        return {"outcome": "stopped", "message": "out of memory"}
    if isinstance(error, NeuronError) and not isinstance(error, InternalError):
        return {"outcome": "refused", "message": str(error)[:LONGEST_MESSAGE]}
    return {"outcome": "failed", "message": f"{type(error).__name__}: {error}"[:LONGEST_MESSAGE]}


def _outputs(machine: relay.vm.VirtualMachine, reference: Reference) -> list[Any]:
    machine.run(**reference.inputs)
    return [output.numpy() for output in machine.get_outputs()]


def _peak_bytes(name: str) -> int:
    """Memory of this process, now (VmRSS) or at most (VmHWM); 0 where there is no /proc."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0) * 1024
