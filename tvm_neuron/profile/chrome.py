"""chrome_trace: a timeline in the Trace Event Format, JSON that chrome://tracing and Perfetto open."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tvm_neuron.profile.run import Slice
from tvm_neuron.profile.timeline import Process

_PS_PER_US = 1e6


def chrome_trace(processes: Sequence[Process]) -> bytes:
    """The JSON text; times are microseconds."""
    rows = [row for pid, process in enumerate(processes) for row in _process(pid, process)]
    return json.dumps({"traceEvents": rows, "displayTimeUnit": "ns"}).encode()


def _process(pid: int, process: Process) -> Iterator[dict[str, Any]]:
    tids = {row: tid for tid, row in enumerate(process.rows)}
    yield {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": process.name}}
    for row, tid in tids.items():
        yield {"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": row}}
        yield {"name": "thread_sort_index", "ph": "M", "pid": pid, "tid": tid, "args": {"sort_index": tid}}
    for one in process.slices:
        place = {"name": one.name, "pid": pid, "tid": tids[one.row], "ts": one.begin_ps / _PS_PER_US}
        lasting = {"ph": "X", "dur": (one.end_ps - one.begin_ps) / _PS_PER_US}
        yield place | (lasting if one.end_ps > one.begin_ps else {"ph": "i", "s": "t"}) | {"args": one.arguments}
    for number, (kind, source, target) in enumerate(process.arrows):
        ends = (("s", process.slices[source]), ("f", process.slices[target]))
        for phase, one in ends:
            yield {
                "name": kind,
                "cat": kind,
                "ph": phase,
                "id": f"{pid}.{number}",
                "pid": pid,
                "tid": tids[one.row],
                "ts": _within(one, phase) / _PS_PER_US,
            } | ({"bp": "e"} if phase == "f" else {})
    for counter in process.counters:
        for at, value in zip(counter.times_ps, counter.values, strict=True):
            yield {"name": counter.name, "ph": "C", "pid": pid, "ts": at / _PS_PER_US, "args": {counter.unit: value}}


def _within(one: Slice, phase: str) -> float:
    """A time at which nothing but the slice is there: an arrow belongs to what encloses its end."""
    return (one.begin_ps + one.end_ps) / 2 if phase == "s" else one.begin_ps
