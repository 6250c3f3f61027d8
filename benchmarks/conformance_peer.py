"""The same backend cases run by onnxruntime on the CPU, held to the same tolerance: what ours is set beside.

Through its NumPy interface, which has no bfloat16, float8 or integers of four bits: cases with those count as refused.

`python -m benchmarks.conformance_peer [NAME ...]`
"""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import onnxruntime
from onnx.backend.test.case.test_case import TestCase

from benchmarks.backend_cases import difference, load, select


def result(case: TestCase) -> str:
    """passed, wrong or refused (the model is not loaded, or running it raises)."""
    model, data_sets = load(case)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        for inputs, outputs in data_sets:
            given: dict[str, Any] = dict(zip(names, inputs, strict=False))
            found = session.run(None, given)
            if difference(model, found, outputs):
                return "wrong"
    except Exception:  # onnxruntime's errors have no common class but this
        return "refused"
    return "passed"


def count(names: Sequence[str] = ()) -> Counter[str]:
    """How many cases come to what."""
    onnxruntime.set_default_logger_severity(4)
    return Counter(result(case) for case in select(names))


def main() -> None:
    """Runs and prints the counts."""
    counts = count(sys.argv[1:])
    found = ", ".join(f"{count} {result}" for result, count in counts.items())
    print(f"onnxruntime {onnxruntime.__version__}, {counts.total()} cases: {found}")


if __name__ == "__main__":
    main()
