"""quickest: of the programs that several tunings give, the one that the cost model finds quickest; what -O3 does.

Beside it `fitting`: of several ways to do the same, those that fit into memory.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from tvm_neuron.codegen.defects import is_defect, tell
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.tuning import CANDIDATES, Tuning
from tvm_neuron.errors import CompileError, InternalError, internal_error
from tvm_neuron.neff import Pipeline
from tvm_neuron.sim import time_program

Make = Callable[[BuildOptions], Pipeline]
Way = TypeVar("Way")
Made = TypeVar("Made")


def quickest(make: Make, name: str, options: BuildOptions) -> tuple[Pipeline, Tuning]:
    """The quickest program and its tuning: of each field's candidates in turn, as long as there is time for one more.

    A candidate that fails by a defect is left out, with a warning.

    Raises:
        CompileError: the tuning that `options` have can't be compiled; others are then not tried.
    """
    begin = time.monotonic()
    best = make(options)
    seconds = time.monotonic() - begin
    tuning, least = options.tuning, total_ps(best)
    for field in CANDIDATES:
        for candidate in list(tuning.others(field)):
            if not options.has_time(seconds):
                return best, tuning
            options.on_stage(f"{name}: {least / 1e6:,.1f} us; try {field} = {getattr(candidate, field)}")
            try:
                found = make(replace(options, tuning=candidate, on_stage=lambda _stage: None))
                total = total_ps(found)
            except Exception as error:
                if is_defect(error):
                    choice = f"{field} = {getattr(candidate, field)}"
                    tell(internal_error(error, name), f"not taken for {name}: {choice}", options)
                elif not isinstance(error, CompileError):  # too little memory for something: no candidate
                    raise
                continue
            if total < least:
                best, tuning, least = found, candidate, total
    return best, tuning


def fitting(make: Callable[[Way], Made], ways: Iterable[Way]) -> list[Made]:
    """What is made of each of the ways that fit.

    Raises:
        CompileError: none does; this is the first one's.
        InternalError: the compiler failed.
    """
    found: list[Made] = []
    refusals: list[CompileError] = []
    for way in ways:
        try:
            found.append(make(way))
        except InternalError:
            raise
        except CompileError as error:
            refusals.append(error)
    if refusals and not found:
        raise refusals[0]
    return found


def total_ps(pipeline: Pipeline) -> int:
    """What the slowest core takes."""
    return max(time_program(core.program, core.device).total_ps for core in pipeline.cores)
