"""run_parts: independent parts of one computation on all cores that this process may use."""

import contextvars
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

Part = Callable[[], Any]


@cache
def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores() - 1, "tvm_neuron.sim")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads


def run_parts(parts: Sequence[Part]) -> list[Any]:
    """What each of `parts` returns; this thread takes its share of them.

    What one of them raises is raised when all are over.
    """
    if len(parts) == 1 or cores() == 1:
        return [part() for part in parts]
    waiting = [partial(contextvars.copy_context().run, part) for part in parts]  # NumPy's errstate is a context's
    shares = [waiting[start :: cores()] for start in range(min(cores(), len(parts)))]
    futures = [_pool().submit(_run, share) for share in shares[1:]]
    try:
        done = [_run(shares[0])]
    finally:
        for future in futures:
            future.exception()  # waits
    done += [future.result() for future in futures]
    return [done[number % len(shares)][number // len(shares)] for number in range(len(parts))]


def _run(parts: Sequence[Part]) -> list[Any]:
    return [part() for part in parts]
