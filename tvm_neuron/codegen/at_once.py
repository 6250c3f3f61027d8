"""in_processes: programs of several tunings at once, in processes of Ray, where these are there and it pays."""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

from tvm_neuron import jobs
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.codegen.search import AtOnce, Found
from tvm_neuron.codegen.tuning import Tuning
from tvm_neuron.errors import NeuronError, NeuronWarning
from tvm_neuron.schedule.graph import Graph

_PAYS_FROM_SECONDS = 10.0  # that a program takes here: about what processes take to start, and save at the least
Task = Callable[[Graph, BuildOptions], Found]


@contextmanager
def in_processes(task: Task, legalised: Callable[[], Graph], options: BuildOptions, seconds: float) -> Iterator[AtOnce]:
    """What makes `task(legalised(), options)` for several options at once; nothing, where a program takes few seconds.

    `options.processes` says in how many processes, and that it pays.

    Raises:
        OptionError: `options.processes` asks for processes, and Ray is not installed.
    """
    processes = options.processes or os.cpu_count() or 1
    pays = options.processes is not None or (seconds >= _PAYS_FROM_SECONDS and jobs.is_there())
    with ExitStack() as stack:
        if processes > 1 and pays and _starts(stack, processes):
            graph = legalised()
            yield lambda wanted: _made(task, graph, wanted, options)
        else:
            yield lambda _wanted: {}


def _starts(stack: ExitStack, processes: int) -> bool:
    try:
        stack.enter_context(jobs.connected(processes))
    except NeuronError:
        raise
    except Exception as error:
        _warn(error)
        return False
    return True


def _made(task: Task, graph: Graph, wanted: Sequence[BuildOptions], options: BuildOptions) -> Mapping[Tuning, Found]:
    """What the processes make; the rest is made again here, where its failure is told as ever."""
    options.on_stage(f"try {len(wanted)} tunings at once")
    found: dict[Tuning, Found] = {}
    try:
        for (each, _), made in jobs.results(partial(_trial, task), [_job(each) for each in wanted], [graph]):
            if isinstance(made, Found):
                found[each.tuning] = made
    except Exception as error:
        _warn(error)
    return found


def _job(options: BuildOptions) -> tuple[BuildOptions, float]:
    """Options without listeners and the seconds that are left, both for a process that may be on another machine."""
    usual = BuildOptions()
    sent = replace(options, host_cpu=options.host_level, on_stage=usual.on_stage, on_defect=usual.on_defect)
    return sent, options.ends_at - time.monotonic()


def _trial(task: Task, job: tuple[BuildOptions, float], graph: Graph) -> Found | None:
    options, seconds_left = job
    try:
        return task(graph, replace(options, ends_at=time.monotonic() + seconds_left))
    except Exception:
        return None


def _warn(error: Exception) -> None:
    first = f"{type(error).__name__}: {error}".splitlines()[0]
    warnings.warn(f"tunings are tried one after the other, since processes of Ray fail: {first}", NeuronWarning, 2)
