"""Runs published sample kernels, unmodified, from checkouts of their own: right or not, how far off, modelled time.

    python -m benchmarks.nki_kernels --samples FOLDER [--only TEXT] [--measured nkibench.csv]

FOLDER has checkouts of nki-samples, nki-library and AccelOpt somewhere below; nothing of them is kept here. They are
the user's code and run as such. Each kernel is compared with NumPy in float64; a time that was measured is read from a
table with the columns `case` and `ms`.
"""

import argparse
import csv
import importlib
import importlib.util
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import tvm_neuron.nki as nki
from benchmarks import nki_library
from benchmarks.nki_cases import CASES, EARLIER, FLOAT32, NKIBENCH, Case
from tvm_neuron.errors import NeuronError

# What some samples import, only to check themselves.
_OPTIONAL = ("torch", "torch_xla", "torch_neuronx", "scipy", "loguru", "transformers")
_ROW = "{:22} {:42} {:6} {:>9} {:>11} {:>11} {:>6} {:>8} {:>7}  {}"


@dataclass(frozen=True)
class Found:
    """What came of one kernel; a time is in microseconds."""

    corpus: str
    name: str
    error: float | None = None
    is_right: bool = False
    modelled_us: float = 0.0
    measured_us: float = 0.0
    instructions: int = 0
    problem: str = ""


class _Absent(MetaPathFinder, Loader):
    """Finds what samples import and this machine lacks: modules whose members are of no use."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """A module for any of the optional names."""
        return ModuleSpec(fullname, self, is_package=True) if fullname.split(".")[0] in _OPTIONAL else None

    def exec_module(self, module: ModuleType) -> None:
        """Gives it every name that is asked for, but those of Python, by which libraries look modules over."""

        def member(name: str) -> SimpleNamespace:
            if name.startswith("__"):
                raise AttributeError(name)
            return SimpleNamespace()

        module.__getattr__ = member  # type: ignore[method-assign]


def load(path: Path) -> ModuleType:
    """A file of a checkout as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find(folder: Path, end: str, is_old: bool = False) -> Path:
    """The file below `folder` whose path ends like that, in a checkout with reference kernels or without."""
    every = sorted(folder.rglob(f"**/{end}"))
    found = [path for path in every if is_old == any((up / "reference/attention.py").exists() for up in path.parents)]
    if not found:
        raise FileNotFoundError(f"no {end} below {folder}")
    return found[0]


def off(found: Any, wanted: Any) -> float:
    """Relative L2 error, the worst of several outputs."""
    pairs = zip(_tuple(found), _tuple(wanted), strict=False)  # some also return what they keep for later
    errors = [_off(np.asarray(one, np.float64), np.asarray(other, np.float64)) for one, other in pairs]
    return max(errors, key=lambda error: np.inf if np.isnan(error) else error)


def _off(found: Any, wanted: Any) -> float:
    return float(np.linalg.norm(found.reshape(wanted.shape) - wanted) / np.linalg.norm(wanted))


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def run_case(folder: Path, case: Case) -> Found:
    """Runs a sample."""
    arguments = case.arguments(np.random.default_rng(0))
    wide = (each.astype(np.float64) if isinstance(each, np.ndarray) else each for each in arguments)

    def call() -> Any:
        function = getattr(load(find(folder, case.file, case.corpus == EARLIER)), case.function)
        function = nki.jit(function) if case.is_bare else function
        return (function[case.grid] if case.grid else function)(*arguments, **dict(case.words))

    return _run(case.corpus, case.name, call, lambda found: off(found, case.reference(*wide)), case.tolerance)


def reference_of(folder: Path, kernel: Path) -> ModuleType:
    """What NKIBench has of inputs and NumPy beside one of its kernels."""
    return load(next(folder.rglob(f"NKIBench/reference/{kernel.stem.removesuffix('_0')}_numpy_*.py")))


def run_nkibench(folder: Path, kernel: Path, measured: dict[str, float]) -> Found:
    """Runs a kernel of NKIBench against the reference beside it."""
    reference = reference_of(folder, kernel)
    np.random.seed(0)
    inputs = reference.get_inputs()

    def compare(found: Any) -> float:
        wanted = reference.forward(*inputs)
        return off(tuple(reference.transform_nki_outputs(found, wanted)), wanted)

    name = kernel.stem.removesuffix("_0")
    us = 1000 * next((ms for case, ms in measured.items() if sorted(case.split("_")) == sorted(name.split("_"))), 0.0)
    call = lambda: load(kernel).kernel(*reference.transform_to_nki_inputs(inputs))  # noqa: E731
    return _run(NKIBENCH, name, call, compare, FLOAT32, us)


def run_library(entry: nki_library.Entry) -> Found:
    """Runs a kernel of nki-library."""

    def get(module: str) -> Any:
        return importlib.import_module(f"nkilib.{module}")

    arguments, words, wanted = entry.make(np.random.default_rng(0), get)

    def call() -> Any:
        function = entry.called(get) if entry.called else nki_library.member(entry.module, entry.function)
        return nki.jit(function).on(entry.chip)[1](*arguments, **words)

    compare = lambda found: off(entry.compared(found), wanted)  # noqa: E731
    return _run(nki_library.LIBRARY, entry.name, call, compare, entry.tolerance)


def _run(
    corpus: str, name: str, call: Callable[[], Any], compare: Callable[[Any], float], tolerance: float, us: float = 0.0
) -> Found:
    times: list[tuple[float, int]] = []
    with nki.watch(lambda traced: times.append(_timed(traced))):
        try:
            error = compare(call())
        except (NeuronError, Exception) as problem:
            text = " ".join(f"{type(problem).__name__}: {problem}".split())
            return Found(corpus, name, problem=text, measured_us=us, modelled_us=sum(t for t, _ in times))
    modelled, count = sum(t for t, _ in times), sum(n for _, n in times)
    return Found(corpus, name, error, error <= tolerance, modelled, us, count)


def _timed(traced: nki.Traced) -> tuple[float, int]:
    timing = traced.time()
    return timing.total_ps / 1e6, timing.instructions


def run_all(folder: Path, only: Sequence[str], measured: dict[str, float]) -> Iterator[Found]:
    """All samples whose name has one of the texts `only`."""

    def chosen(corpus: str, name: str) -> bool:
        return not only or any(text in f"{corpus} {name}" for text in only)

    for case in CASES:
        if chosen(case.corpus, case.name):
            yield run_case(folder, case)
    for kernel in sorted(folder.rglob("NKIBench/kernels/*.py")):
        if chosen(NKIBENCH, kernel.stem):
            yield run_nkibench(folder, kernel, measured)

    library = nki_library.folder_of(folder)
    if library is None:
        return
    sys.path.insert(0, str(library.parent))
    for entry in nki_library.ENTRIES:
        if chosen(nki_library.LIBRARY, entry.name):
            yield run_library(entry)
    for name, why in nki_library.LACKING.items():
        if chosen(nki_library.LIBRARY, name):
            print(f"{nki_library.LIBRARY:22} {name:42} not run: it needs {why}")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=Path, required=True, help="folder with the checkouts")
    parser.add_argument("--only", action="append", default=[], help="only kernels whose corpus or name has this text")
    parser.add_argument("--measured", type=Path, help="table of measured times, with columns case and ms")
    options = parser.parse_args()
    measured = {}
    if options.measured:
        with options.measured.open() as file:
            measured = {row["case"]: float(row["ms"]) for row in csv.DictReader(file)}
    sys.meta_path.insert(0, _Absent())  # also where they are there: what samples need of each other is not
    print(_ROW.format("corpus", "kernel", "right", "error", "modelled us", "measured us", "ratio", "instr.", "s", ""))
    right, total, ratios = Counter[str](), Counter[str](), []
    start = time.perf_counter()
    for found in run_all(options.samples, options.only, measured):
        right[found.corpus] += found.is_right
        total[found.corpus] += 1
        ratio = found.modelled_us / found.measured_us if found.measured_us and found.is_right else 0.0
        ratios += [ratio] if ratio else []
        took, start = time.perf_counter() - start, time.perf_counter()
        print(
            _ROW.format(
                found.corpus, found.name, "yes" if found.is_right else "NO",
                "" if found.error is None else f"{found.error:.1e}", f"{found.modelled_us:.1f}",
                f"{found.measured_us:.1f}" if found.measured_us else "", f"{ratio:.2f}" if ratio else "",
                found.instructions, f"{took:.1f}", found.problem[:300],
            ),
            flush=True,
        )  # fmt: skip
    print("; ".join(f"{corpus}: {right[corpus]} of {total[corpus]}" for corpus in total))
    if ratios:
        errors = [abs(ratio - 1) for ratio in ratios]
        print(f"modelled / measured, {len(ratios)} kernels: mean error {np.mean(errors):.0%}, worst {max(errors):.0%}")


if __name__ == "__main__":
    main()
