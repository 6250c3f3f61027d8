"""quickest: of the programs that several tunings give, the one that the cost model finds quickest; what -O3 does."""

import time
from collections.abc import Callable
from dataclasses import replace

from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.tuning import CANDIDATES
from tvm_neuron.errors import CompileError
from tvm_neuron.neff import Pipeline
from tvm_neuron.sim import time_program

Make = Callable[[BuildOptions], Pipeline]


def quickest(make: Make, name: str, options: BuildOptions) -> Pipeline:
    """Tries each field's candidates in turn with the best of the others, as long as there is time for one more.

    Raises:
        CompileError: the tuning that `options` have can't be compiled; others are then not tried.
    """
    begin = time.monotonic()
    best = make(options)
    seconds = time.monotonic() - begin
    tuning, least = options.tuning, _total_ps(best)
    for field in CANDIDATES:
        for candidate in list(tuning.others(field)):
            if not options.has_time(seconds):
                return best
            options.on_stage(f"{name}: {least / 1e6:,.1f} us; try {field} = {getattr(candidate, field)}")
            try:
                found = make(replace(options, tuning=candidate, on_stage=lambda _stage: None))
            except CompileError:  # too little memory for something: no candidate
                continue
            if (total := _total_ps(found)) < least:
                best, tuning, least = found, candidate, total
    return best


def _total_ps(pipeline: Pipeline) -> int:
    """What the slowest core takes."""
    return max(time_program(core.program, core.device).total_ps for core in pipeline.cores)
