"""Records: what was found of each network, a JSON line each, so that a run can be taken up where it ended."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tvm_neuron.sweep import lines

Record = dict[str, Any]


def load(file: Path) -> dict[str, Record]:
    """By the name of the network; the last line of each counts."""
    return {record["name"]: record for record in lines.load(file)}


def read(file: Path) -> Record:
    """What a process wrote of one network; nothing if it didn't."""
    return json.loads(file.read_text()) if file.exists() else {}


def ratio(record: Record) -> float | None:
    """Modelled time over roofline; None if nothing of it runs on the core."""
    return record["latency_us"] / record["roofline_us"] if record.get("roofline_us") else None


def over_bound(record: Record) -> float | None:
    """Modelled time over what no program could beat; None where that is not known."""
    return record["latency_us"] / record["bound_us"] if record.get("bound_us") else None


def is_wrong(record: Record) -> bool:
    """Whether a result is farther from onnxruntime's than its precision explains."""
    pairs = [(record.get("error"), record.get("bound")), (record.get("error_fp32"), record.get("bound_fp32"))]
    return any(error is not None and bound is not None and not error <= bound for error, bound in pairs)


def core_share(record: Record) -> float | None:
    """Of the multiplications, how many run on the core; None if there are none."""
    total = record.get("macs", 0) + record.get("macs_on_cpu", 0)
    return record["macs"] / total if total else None


def mean(values: Iterable[float | None]) -> float:
    """The geometric mean of those that are known; NaN without any."""
    logs = [math.log(value) for value in values if value]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan
