"""How long runs take on this machine, by the functions of TVM that tell it; the chip's time is in the report."""

import time
from collections.abc import Callable
from typing import Any

from tvm.runtime.module import BenchmarkResult

from tvm_neuron.errors import InputError


def timed(
    run: Callable[[], Any], number: int, repeat: int, min_repeat_ms: float = 0, cooldown_interval_ms: float = 0,
    repeats_to_cooldown: int = 1,
) -> BenchmarkResult:  # fmt: skip
    """`repeat` times the mean of `number` runs, or of as many as take `min_repeat_ms`; after one to warm up."""
    run()
    seconds = []
    for index in range(repeat):
        seconds.append(_mean_seconds(run, number, min_repeat_ms / 1000))
        if cooldown_interval_ms and (index + 1) % repeats_to_cooldown == 0:
            time.sleep(cooldown_interval_ms / 1000)
    return BenchmarkResult(seconds)


def time_evaluator(
    run: Callable[[], Any], func_name: str, number: int, repeat: int, min_repeat_ms: float
) -> Callable[..., BenchmarkResult]:
    """What `module.time_evaluator(func_name, ...)` of an executor is: called, it times `run`.

    Raises InputError: the function is another.
    """
    if func_name != "run":
        raise InputError(f"time_evaluator times the function 'run', not '{func_name}'")
    return lambda *_args: timed(run, number, repeat, min_repeat_ms)


def _mean_seconds(run: Callable[[], Any], number: int, least_seconds: float) -> float:
    """The mean time of at least `number` runs that take at least `least_seconds` together."""
    count = 0
    begin = time.perf_counter()
    while count < number or time.perf_counter() - begin < least_seconds:
        run()
        count += 1
    return (time.perf_counter() - begin) / max(count, 1)
