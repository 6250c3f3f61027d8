"""The onnx package's own backend test suite for target="neuron": what passes, is wrong, refused or crashes.

`python -m benchmarks.conformance [NAME ...] [--every N] [--json FILE]`: all cases, or those whose names contain one of
NAME, and of these each N-th.
"""

import argparse
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tvm
from onnx.backend.test.case.test_case import TestCase
from rich.console import Console
from rich.table import Table

import tvm_neuron
from benchmarks import conformance_peer
from benchmarks.backend_cases import difference, load, select
from benchmarks.row import Bar, Kind, Row
from tvm_neuron import frontend, jobs, relay
from tvm_neuron.errors import NeuronError
from tvm_neuron.frontend.onnx.checks import NeedsShapeError
from tvm_neuron.frontend.onnx.needs import NeedsValueError

MOST_SECONDS = 60
LEAST_PASSED = Bar(1550, kind=Kind.LEAST)
_BATCH = 128


@dataclass(frozen=True)
class Outcome:
    """One case: `result` is passed, wrong, refused, crashed or hanging; `on_cpu` counts operators (-1: not built).

    `given` are the inputs whose values or shapes the runner had to give at compile time, as a user would have to.
    """

    name: str
    result: str
    on_cpu: int
    reason: str
    given: tuple[str, ...] = ()


def run_apart(cases: Sequence[TestCase], processes: int) -> Iterator[Outcome]:
    """What becomes of `cases`; each batch in new `processes`, as TVM keeps the memory of what it ran.

    They are those of a sweep where its extra is installed.
    """
    if jobs.is_there():
        for case, found in jobs.results(_in_sweep, cases, processes=processes, jobs_a_process=_BATCH):
            yield Outcome(case.name, "crashed", -1, found.reason) if isinstance(found, jobs.Lost) else found
        return
    for begin in range(0, len(cases), _BATCH):
        batch = cases[begin : begin + _BATCH]
        # forked, so that the cases need not be sent; TVM has started no threads in this process
        with ProcessPoolExecutor(processes, get_context("fork"), _in_worker) as pool:
            for case, future in [(case, pool.submit(outcome, case)) for case in batch]:
                yield _result(case, future)


def _in_sweep(case: TestCase) -> Outcome:
    _in_worker()
    return outcome(case)


def _in_worker() -> None:
    signal.signal(signal.SIGALRM, _too_long)


def _result(case: TestCase, future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        return Outcome(case.name, "crashed", -1, "the process died, in this case or in one that ran beside it")


class _TooLongError(BaseException):  # so that nobody takes it for a failure to go on after
    pass


def _too_long(_signal: int, _frame: Any) -> None:
    raise _TooLongError


def outcome(case: TestCase) -> Outcome:
    """Imports, builds, runs and compares one case."""
    on_cpu, given = -1, Given()
    signal.alarm(MOST_SECONDS)
    try:
        model, data_sets = load(case)
        mod, params = _import(model, data_sets[0][0] if data_sets else (), given)
        library = relay.build(mod, target="neuron", params=params)
        on_cpu = len(tvm_neuron.report(library).placed("cpu"))
        reason = next(filter(None, (_difference(library, model, given, *data) for data in data_sets)), "")
        return Outcome(case.name, "wrong" if reason else "passed", on_cpu, reason, given.names)
    except _TooLongError:
        return Outcome(case.name, "hanging", on_cpu, f"more than {MOST_SECONDS} s", given.names)
    except NeuronError as error:
        return Outcome(case.name, "refused", on_cpu, str(error), given.names)
    except Exception as error:
        return Outcome(case.name, "crashed", on_cpu, f"{type(error).__name__}: {error}", given.names)
    finally:
        signal.alarm(0)


@dataclass
class Given:
    """What the import was told about inputs: shapes that the model leaves open, values that its shapes depend on."""

    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    values: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs concerned."""
        return tuple(sorted({*self.shapes, *self.values}))


def _import(model: onnx.ModelProto, inputs: Sequence[Any], given: Given) -> Any:
    """The imported model; what the importer asks for, and only that, is given from the test's data."""
    data = dict(zip(_input_names(model), inputs, strict=False))
    while True:
        try:
            return frontend.from_onnx(model, shape=given.shapes, values=given.values)
        except NeedsShapeError as error:
            if not isinstance(data.get(error.input), np.ndarray) or error.input in given.shapes:
                raise
            given.shapes[error.input] = data[error.input].shape
        except NeedsValueError as error:
            if error.inputs <= set(given.values):
                raise
            given.values |= {name: np.asarray(data[name]) for name in error.inputs}
            given.shapes = {name: shape for name, shape in given.shapes.items() if name not in given.values}


def _input_names(model: onnx.ModelProto) -> list[str]:
    initializers = {proto.name for proto in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in initializers]


def _difference(
    library: Any, model: onnx.ModelProto, given: Given, inputs: Sequence[Any], outputs: Sequence[Any]
) -> str:
    """What is wrong with what the library gives, "" if nothing is."""
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    for name, value in zip(_input_names(model), inputs, strict=False):
        if name not in given.values:
            executor.set_input(name, np.asarray(value))
    executor.run()
    return difference(model, [executor.get_output(number).numpy() for number in range(len(outputs))], outputs)


def rows() -> list[Row]:
    """How many cases pass, beside onnxruntime, and what may not be."""
    counts = Counter(each.result for each in run_apart(select(), os.cpu_count() or 1))
    passed = Row(
        what=f"passed of the {counts.total():,} of onnx {onnx.__version__}", unit="cases", samples=(counts["passed"],),
        peer="onnxruntime", peer_samples=(conformance_peer.count()["passed"],), bar=LEAST_PASSED,
    )  # fmt: skip
    bad = sum(counts[result] for result in ("wrong", "crashed", "hanging"))
    return [passed, Row(what="wrong, crashed or hanging", unit="cases", samples=(bad,), bar=Bar(0))]


def main() -> None:
    """Runs, prints the table and what is wrong or crashed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of cases")
    parser.add_argument("--every", type=int, default=1, help="take only each N-th of the cases (1)", metavar="N")
    parser.add_argument("--json", type=Path, help="write every outcome to this file")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    found = list(run_apart(select(arguments.names)[:: arguments.every], os.cpu_count() or 1))
    counts = Counter((each.result, bool(each.given), each.on_cpu == 0) for each in found)
    table = Table("result", "all on the NeuronCore", "else", title=f"{len(found)} cases of onnx {onnx.__version__}")
    for result in ("passed", "wrong", "refused", "crashed", "hanging"):
        for given, label in ((False, ""), (True, ", inputs' values or shapes given at compile time")):
            on_core, elsewhere = counts[result, given, True], counts[result, given, False]
            if not given or on_core or elsewhere:
                table.add_row(result + label, str(on_core), str(elsewhere))
    console = Console()
    for each in found:
        if each.result not in ("passed", "refused"):
            console.print(f"{each.result}: {each.name}: {each.reason}", highlight=False, markup=False)
    console.print(table)
    console.print(f"{time.perf_counter() - begin:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(each) for each in found], indent=1))


if __name__ == "__main__":
    main()
