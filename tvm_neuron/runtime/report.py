"""`tvm_neuron.report`: what a compiled library costs, from its manifest and its NEFFs."""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tvm_neuron import neff
from tvm_neuron.hw import load_device
from tvm_neuron.profile import CpuPart, Part, Report, make_report
from tvm_neuron.profile.spmd import spmd_use
from tvm_neuron.runtime.contents import Library, manifest, neffs, plan_of
from tvm_neuron.runtime.executor import executors

_RUNS = 5


def report(library: Library, bucket: int = 0, inputs: Mapping[str, Any] | None = None) -> Report:
    """The report of a library, built just now or loaded from a file; of one of its buckets if it has several.

    With `inputs`, an array for each by its name, the library is run, and its CPU parts are timed on this machine.

    Raises NeuronError when it was not compiled by tvm_neuron or has no such bucket, NeffError when a NEFF in it can't
    be read, InputError when the inputs don't fit it.
    """
    described = manifest(library, bucket)
    placement = [neff.Placement(**row) for row in described["placement"]]
    found = parts(library, bucket)
    is_timed = inputs is not None and any(isinstance(part, CpuPart) for part in found)
    cpu_us = _cpu_us(library, inputs) if is_timed else None
    plan = plan_of(library)
    programs = [part for part in found if isinstance(part, neff.Pipeline)]
    use = spmd_use(plan, programs, load_device(described["device"])) if plan is not None else None
    return make_report(placement, found, described["device"], cpu_us, described["macs_moved"], use)


def report_in_turn(libraries: Sequence[tuple[Library, int]], kept: Sequence[neff.Placement] = ()) -> Report:
    """The report of libraries that run one after the other, each with the multiplications that it asks for.

    `kept` are operators that are in none of them, whose multiplications are not counted. Raises what `report` does.
    """
    each = [(report(library), asked) for library, asked in libraries]
    asked = sum(count for _, count in each)
    done = sum(one.macs_moved * count for one, count in each)
    return make_report(
        [*(row for one, _ in each for row in one.placement), *kept], [part for one, _ in each for part in one.parts],
        each[0][0].device, None, done / asked if asked else max(one.macs_moved for one, _ in each),
    )  # fmt: skip


def _cpu_us(library: Library, inputs: Mapping[str, Any] | None) -> float:
    """What runs take but for the hardware model, the median; the first one, which loads programs, doesn't count."""
    executor = executors(library)()
    executor.set_inputs(inputs or {})
    seconds = []
    for _ in range(_RUNS + 1):
        begin = time.perf_counter()
        executor.run()
        seconds.append(time.perf_counter() - begin - executor.moved.model_seconds)
    return 1e6 * statistics.median(seconds[1:])


def parts(library: Library, bucket: int = 0) -> list[Part]:
    """What a library runs, in turn: its programs, and what it does on the CPU between them.

    Raises what `report` does.
    """
    compiled = {name: _named(neff.read_pipeline(data), name) for name, data in neffs(library, bucket).items()}
    order = manifest(library, bucket)["order"]
    return [compiled[name] if name in compiled else CpuPart(name) for name in order]


def _named(pipeline: neff.Pipeline, name: str) -> neff.Pipeline:
    """With the name that it has in the library, where other parts have programs of the same."""
    if pipeline.name == name or len(pipeline.cores) > 1:
        return pipeline
    return replace(pipeline, name=name, cores=(replace(pipeline.cores[0], name=name),))
