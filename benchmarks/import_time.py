"""What importing costs: TVM alone, the runtime half that a deployed library needs, and the whole compiler.

`python -m benchmarks.import_time`: seconds of processor time in new processes, taken in turns; the median of seven.
"""

import resource
import statistics
import subprocess
import sys

IMPORTS = {
    "TVM alone": "import tvm",
    "the runtime half (tvm_neuron.runtime)": "import tvm_neuron.runtime",
    "the compiler (tvm_neuron.build, relay)": "import tvm_neuron.relay, tvm_neuron.build",
}
ROUNDS = 7


def seconds(statement: str) -> float:
    """User and system time of a new process that runs one statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measures and prints."""
    found: dict[str, list[float]] = {what: [] for what in IMPORTS}
    for _ in range(ROUNDS):
        for what, statement in IMPORTS.items():
            found[what].append(seconds(statement))
    for what, samples in found.items():
        print(f"{what}: {statistics.median(samples):.2f} s")


if __name__ == "__main__":
    main()
