"""What importing costs: the runtime half that a deployed library needs, and the compiler, beside TVM alone.

Seconds of processor time in new processes, taken in turns.
"""

import resource
import subprocess
import sys

from benchmarks.row import Row

IMPORTS = {
    "import tvm": "import tvm",
    "import tvm_neuron.runtime": "import tvm_neuron.runtime",
    "import of the whole compiler": "import tvm_neuron.relay, tvm_neuron.build",
}
_ROUNDS = 5


def measure() -> list[Row]:
    """A row for each half, beside TVM alone."""
    found: dict[str, list[float]] = {what: [] for what in IMPORTS}
    for _ in range(_ROUNDS):
        for what, statement in IMPORTS.items():
            found[what].append(processor_seconds(statement))
    peer, *halves = IMPORTS
    return [
        Row(what=what, unit="s", samples=tuple(found[what]), peer=peer, peer_samples=tuple(found[peer]))
        for what in halves
    ]


def processor_seconds(statement: str) -> float:
    """User and system time of a new process that runs one statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
