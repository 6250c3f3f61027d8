"""Chrome trace: events as JSON for chrome://tracing and Perfetto, one row per queue of each core."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_neuron.isa import QUEUES
from tvm_neuron.sim.result import Event

_PS_PER_US = 1e6


@dataclass(frozen=True, slots=True)
class Track:
    """Events that begin together at `begin_ps`: those of a core, or of what lies between cores."""

    name: str
    begin_ps: int
    events: Sequence[Event]


def chrome_trace(cores: Iterable[Track]) -> str:
    """The events in the Trace Event Format, a process for each track and a row for each queue; times are us there."""
    rows: list[dict[str, Any]] = []
    for pid, track in enumerate(cores):
        tids = {queue: tid for tid, queue in enumerate(dict.fromkeys((*QUEUES, *(e.queue for e in track.events))))}
        rows.append({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": track.name}})
        for queue in dict.fromkeys(event.queue for event in track.events):
            rows.append({"name": "thread_name", "ph": "M", "pid": pid, "tid": tids[queue], "args": {"name": queue}})
        for event in track.events:
            rows.append(
                {
                    "name": event.origin,
                    "cat": event.mnemonic,
                    "ph": "X",
                    "pid": pid,
                    "tid": tids[event.queue],
                    "ts": (track.begin_ps + event.start_ps) / _PS_PER_US,
                    "dur": (event.end_ps - event.start_ps) / _PS_PER_US,
                }
            )
    return json.dumps({"traceEvents": rows, "displayTimeUnit": "ns"})
