"""Chrome trace: events as JSON for chrome://tracing and Perfetto, one row per queue."""

import json
from collections.abc import Iterable
from typing import Any

from tvm_neuron.isa import QUEUES
from tvm_neuron.sim.result import Event

_PS_PER_US = 1e6


def chrome_trace(events: Iterable[Event]) -> str:
    """The events in the Trace Event Format; times there are microseconds."""
    rows: list[dict[str, Any]] = [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": tid, "args": {"name": queue}}
        for tid, queue in enumerate(QUEUES)
    ]
    for event in events:
        rows.append(
            {
                "name": event.origin,
                "cat": event.mnemonic,
                "ph": "X",
                "pid": 0,
                "tid": QUEUES.index(event.queue),
                "ts": event.start_ps / _PS_PER_US,
                "dur": (event.end_ps - event.start_ps) / _PS_PER_US,
            }
        )
    return json.dumps({"traceEvents": rows, "displayTimeUnit": "ns"})
