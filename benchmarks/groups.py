"""Groups: all that `python -m benchmarks` measures, cut into tasks that each run in a process of its own."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context

from benchmarks import (
    busy,
    calibration,
    compile_time,
    conformance,
    cpu_parts,
    import_time,
    load_time,
    networks,
    pipeline,
    run_time,
)
from benchmarks.row import Row
from benchmarks.simulators.rows import beside_others
from tvm_neuron.frontend.sample_models import LIGHT_NETWORKS

Task = Callable[[], list[Row]]


@dataclass(frozen=True)
class Group:
    """Rows that belong together. `is_timed`: they depend on the machine, so nothing else may run beside them."""

    name: str
    tasks: Sequence[Task]
    is_timed: bool = True


GROUPS = (
    Group("compile_time", [partial(compile_time.measure, name) for name in compile_time.NETWORKS]),
    Group("run_time", [partial(run_time.measure, name) for name in run_time.SUBJECTS]),
    Group("cpu_parts", [cpu_parts.measure]),
    Group("import_time", [import_time.measure]),
    Group("load_time", [partial(load_time.measure, name) for name in load_time.NETWORKS]),
    Group("simulators", [beside_others]),
    Group("conformance", [conformance.rows]),
    Group("busy", [partial(busy.measure, goal, chip) for goal in busy.GOALS for chip in busy.CHIPS], is_timed=False),
    Group("calibration", [calibration.rows], is_timed=False),
    Group(
        "pipeline",
        [partial(pipeline.rows, name, chip) for name in pipeline.networks() for chip in pipeline.CHIPS],
        is_timed=False,
    ),
    Group("networks", [partial(networks.measure, name) for name in LIGHT_NETWORKS], is_timed=False),
)


def run(group: Group) -> Iterator[Row]:
    """Its rows: those of timed tasks one after the other, of others on all cores.

    Each task has a new process, because TVM keeps the memory of what it ran.
    """
    processes = 1 if group.is_timed else os.cpu_count()
    with ProcessPoolExecutor(processes, get_context("spawn"), max_tasks_per_child=1) as pool:
        for rows in [pool.submit(task) for task in group.tasks]:
            yield from (replace(row, group=group.name) for row in rows.result())
