"""measure: one point compiled and timed, as a row; one that can't be compiled is a row with its reason."""

import json
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from tvm_neuron import relay
from tvm_neuron.bundle import IoConfig
from tvm_neuron.errors import InternalError, NeuronError, NeuronWarning
from tvm_neuron.frontend.onnx.checks import load_model
from tvm_neuron.frontend.onnx.graphs import real_inputs
from tvm_neuron.hw.load import device_to_dict
from tvm_neuron.neff import Pipeline
from tvm_neuron.profile import Report
from tvm_neuron.runtime import report as report_of
from tvm_neuron.sweep.area import area_mm2
from tvm_neuron.sweep.choices import BATCH, Point

Row = dict[str, Any]
COMPILED, REFUSED, FAILED, LOST = "compiled", "refused", "failed", "lost"
_NUMBERS = (
    "latency_us", "interval_us", "roofline_us", "bound_us", "pe_utilisation", "dram_bytes", "sbuf_peak_bytes",
    "spill_bytes", "weight_bytes", "instructions",
)  # fmt: skip


def measure(point: Point) -> Row:
    """Compiles a point and asks the clock; runs nothing."""
    begin = time.perf_counter()
    try:
        numbers, reasons = _measured(point)
        row: Row = {"outcome": COMPILED, "reason": "; ".join(reasons), **numbers}
    except Exception as error:
        known = isinstance(error, NeuronError) and not isinstance(error, InternalError)
        reason = str(error) if known else f"{type(error).__name__}: {error}"
        row = {"outcome": REFUSED if known else FAILED, "reason": reason}
    return row | {"compile_seconds": time.perf_counter() - begin}


def about(point: Point) -> Row:
    """What the row of a point has before anything is compiled."""
    cores = point.options.pipeline_cores
    return {"model": point.model, "chip": point.chip, **point.choice, "area_mm2": cores * area_mm2(point.device)}


def _measured(point: Point) -> tuple[Row, list[str]]:
    """The numbers of the row, and why it isn't all that it could be."""
    reasons: list[str] = []

    def on_defect(error: InternalError) -> str:
        reasons.append(f"{error.code}: {error}")
        return "the row's reason"

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", NeuronWarning)  # defects are recorded, and what runs on the CPU is counted
        device = Path(folder, "device.json")
        device.write_text(json.dumps(device_to_dict(point.device)))
        model, _ = load_model(point.model)
        given = point.inputs
        shapes = (given.shapes or {}) | dict(_shapes(model.graph, given, point.batch))
        mod, params = relay.frontend.from_onnx(point.model, shapes, given.dtypes or "float32", values=given.values)
        options = replace(point.options, device=str(device), on_defect=on_defect, processes=1)  # points fill the cores
        report = report_of(relay.build(mod, params=params, options=options))
    first = next(iter(_sizes(model.graph, given).values()), [])
    rows = point.batch or (first[0] if first else 1)
    on_cpu = report.placed("cpu")
    if on_cpu and not report.subgraphs:
        reasons.append(f"nothing runs on the NeuronCore: {on_cpu[0].name}: {on_cpu[0].reason}")
    return {BATCH: rows, **_numbers(report, rows)}, reasons


def _sizes(graph: onnx.GraphProto, given: IoConfig) -> dict[str, list[int]]:
    """The sizes of the inputs, as the file or whoever asks says; 0: open."""
    known = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in real_inputs(graph)}
    return known | {name: list(shape) for name, shape in (given.shapes or {}).items()}


def _shapes(graph: onnx.GraphProto, given: IoConfig, batch: int | None) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The inputs' sizes with another batch: of all whose first size is open, or that of the first input."""
    sizes = _sizes(graph, given)
    usual = next((dims[0] for dims in sizes.values() if dims), 0)
    for name, dims in sizes.items():
        if batch is not None and dims and dims[0] in (0, usual):
            yield name, (batch, *dims[1:])


def _numbers(report: Report, rows: int) -> Row:
    found: Row = {name: getattr(report, name) for name in _NUMBERS}
    cores = [core for part in report.parts if isinstance(part, Pipeline) for core in part.cores]
    if not cores:  # nothing took any time that is modelled
        found |= dict.fromkeys(("latency_us", "interval_us", "roofline_us", "bound_us"))
    return found | {
        "us_per_row": report.interval_us / rows if cores else None,
        "memory_bytes": sum(tensor.size_bytes for core in cores for tensor in core.program.tensors),
        "operators_on_core": len(report.placed("neuroncore")),
        "operators_on_cpu": len(report.placed("cpu")),
    }
