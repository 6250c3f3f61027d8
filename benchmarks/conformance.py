"""The onnx package's own backend test suite for target="neuron": what passes, is wrong, refused or crashes.

`python -m benchmarks.conformance [NAME ...] [--json FILE]`: all cases, or those whose names contain one of NAME.
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
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests
from rich.console import Console
from rich.table import Table

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.errors import NeuronError
from tvm_neuron.frontend.onnx.checks import NeedsShapeError
from tvm_neuron.frontend.onnx.needs import NeedsValueError
from tvm_neuron.runtime.tensors import widened

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
MOST_SECONDS = 60
_BATCH = 128
# Products are rounded to bf16 (2^-9) and summed over up to some hundred terms; everything else is far closer.
_DRAWN = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
TOLERANCE = 2e-2


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


def select(wanted: Sequence[str] = ()) -> list[TestCase]:
    """All cases, or those whose names contain one of `wanted`."""
    cases = [case for kind in KINDS for case in load_model_tests(kind=kind)]
    return [case for case in cases if not wanted or any(part in case.name for part in wanted)]


def run_apart(cases: Sequence[TestCase], processes: int) -> Iterator[Outcome]:
    """What becomes of `cases`; each batch in new `processes`, as TVM keeps the memory of what it ran."""
    for begin in range(0, len(cases), _BATCH):
        batch = cases[begin : begin + _BATCH]
        # forked, so that the cases need not be sent; TVM has started no threads in this process
        with ProcessPoolExecutor(processes, get_context("fork"), _in_worker) as pool:
            for case, future in [(case, pool.submit(outcome, case)) for case in batch]:
                yield _result(case, future)


def _in_worker() -> None:
    signal.signal(signal.SIGALRM, _too_long)


def _result(case: TestCase, future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        return Outcome(case.name, "crashed", -1, "the process died, in this case or in one that ran beside it")


class _TooLongError(Exception):
    pass


def _too_long(_signal: int, _frame: Any) -> None:
    raise _TooLongError


def outcome(case: TestCase) -> Outcome:
    """Imports, builds, runs and compares one case."""
    on_cpu, given = -1, Given()
    signal.alarm(MOST_SECONDS)
    try:
        model, data_sets = _load(case)
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
            return relay.frontend.from_onnx(model, shape=given.shapes, values=given.values)
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


def _load(case: TestCase) -> tuple[onnx.ModelProto, Sequence[tuple[Sequence[Any], Sequence[Any]]]]:
    if case.model is not None:
        return case.model, [tuple(map(_arrays, data)) for data in case.data_sets or ()]
    folder = Path(case.model_dir)
    sets = sorted(folder.glob("test_data_set_*"))
    return onnx.load(folder / "model.onnx"), [(_tensors(each, "input"), _tensors(each, "output")) for each in sets]


def _arrays(values: Sequence[Any]) -> list[Any]:
    """Values of the suite's Python cases, which give those of dtypes that NumPy lacks as ONNX tensors."""
    return [numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value for value in values]


def _tensors(folder: Path, kind: str) -> list[np.ndarray]:
    files = [folder / f"{kind}_{number}.pb" for number in range(len(list(folder.glob(f"{kind}_*.pb"))))]
    return [numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes())) for file in files]


def _difference(
    library: Any, model: onnx.ModelProto, given: Given, inputs: Sequence[Any], outputs: Sequence[Any]
) -> str:
    """What is wrong with the outputs, "" if nothing is."""
    executor = relay.graph_executor.GraphModule(library["default"](tvm.cpu()))
    for name, value in zip(_input_names(model), inputs, strict=False):
        if name not in given.values:
            executor.set_input(name, np.asarray(value))
    executor.run()
    for number, value in enumerate(outputs):
        actual, expected = executor.get_output(number).numpy(), widened(np.asarray(value))
        if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
            return f"output {number} is {actual.dtype}{list(actual.shape)}, not {expected.dtype}{list(expected.shape)}"
        if _DRAWN & {node.op_type for node in model.graph.node}:
            continue  # the standard leaves the generator open, so only dtypes and shapes can be compared
        a, b = actual.astype(np.float64), expected.astype(np.float64)
        scale = np.abs(b[np.isfinite(b)]).max(initial=1e-3)
        if not np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True):
            return f"output {number} differs by up to {np.nanmax(np.abs(a - b))}"
    return ""


def main() -> None:
    """Runs, prints the table and what is wrong or crashed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of cases")
    parser.add_argument("--json", type=Path, help="write every outcome to this file")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    found = list(run_apart(select(arguments.names), os.cpu_count() or 1))
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
