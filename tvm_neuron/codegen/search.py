"""quickest: of the programs that several tunings give, the one that the cost model finds quickest; what -O3 does.

Beside it `fitting`: of several ways to do the same, those that fit into memory.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from tvm_neuron.codegen.defects import is_defect, tell
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.tuning import CANDIDATES, Tuning
from tvm_neuron.errors import CompileError, InternalError, internal_error
from tvm_neuron.neff import Pipeline
from tvm_neuron.sim import time_program

Way = TypeVar("Way")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Found:
    """A program, as the bytes of its NEFF, and what its slowest core takes."""

    neff: bytes
    total_ps: int


Make = Callable[[BuildOptions], Found]
AtOnce = Callable[[Sequence[BuildOptions]], Mapping[Tuning, Found]]
"""What is made of some options at the same time, elsewhere; what is not made of all of them is made here."""


@contextmanager
def nowhere(_options: BuildOptions, _seconds: float) -> Iterator[AtOnce]:
    """Nothing is made elsewhere."""
    yield lambda _wanted: {}


def quickest(
    make: Make, name: str, options: BuildOptions,
    elsewhere: Callable[[BuildOptions, float], AbstractContextManager[AtOnce]] = nowhere,
) -> tuple[Found, Tuning]:  # fmt: skip
    """The quickest program and its tuning: of each field's candidates in turn, as long as there is time for one more.

    The candidates of one field may be made `elsewhere`, which is told what one takes here; where they are made changes
    nothing about which is taken. A candidate that fails by a defect is left out, with a warning.

    Raises:
        CompileError: the tuning that `options` have can't be compiled; others are then not tried.
    """
    begin = time.monotonic()
    best, tuning = make(options), options.tuning
    seconds = time.monotonic() - begin
    with elsewhere(options, seconds) as at_once:
        for field in CANDIDATES:
            wanted = [replace(options, tuning=other, on_stage=lambda _stage: None) for other in tuning.others(field)]
            made = at_once(wanted) if options.has_time(seconds) else {}
            for each in wanted:
                found = made.get(each.tuning)
                if found is None:
                    if not options.has_time(seconds):
                        return best, tuning
                    choice = f"{field} = {getattr(each.tuning, field)}"
                    options.on_stage(f"{name}: {best.total_ps / 1e6:,.1f} us; try {choice}")
                    found = _attempt(make, each, name, choice)
                if found is not None and found.total_ps < best.total_ps:
                    best, tuning = found, each.tuning
    return best, tuning


def _attempt(make: Make, options: BuildOptions, name: str, choice: str) -> Found | None:
    """What is made of a candidate; None if nothing can be."""
    try:
        return make(options)
    except Exception as error:
        if is_defect(error):
            tell(internal_error(error, name), f"not taken for {name}: {choice}", options)
        elif not isinstance(error, CompileError):  # too little memory for something: no candidate
            raise
    return None


def fitting(make: Callable[[Way], Made], ways: Iterable[Way]) -> list[Made]:
    """What is made of each of the ways that fit.

    Raises:
        CompileError: none does; this is the first one's.
        InternalError: the compiler failed.
    """
    found: list[Made] = []
    refusals: list[CompileError] = []
    for way in ways:
        with left_out(refusals):
            found.append(make(way))
    if refusals and not found:
        raise refusals[0]
    return found


@contextmanager
def left_out(refusals: list[CompileError]) -> Iterator[None]:
    """One way of several: that it doesn't fit is put down, and no more.

    Raises:
        InternalError: the compiler failed.
    """
    try:
        yield
    except InternalError:
        raise
    except CompileError as error:
        refusals.append(error)


def total_ps(pipeline: Pipeline) -> int:
    """What the slowest core takes."""
    return max(time_program(core.program, core.device).total_ps for core in pipeline.cores)
