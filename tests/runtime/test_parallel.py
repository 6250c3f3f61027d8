"""Parallel loops of CPU parts: one pool of threads for all callers."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T  # noqa: N812

import tvm_neuron  # noqa: F401  loads what is tested

SIZE = 1000


def squares(limit: int) -> tvm.runtime.Module:
    """y[i] = x[i] * x[i], which fails where that is `limit` or more."""

    def loop(x: object, y: object) -> tirx.Stmt:
        with IRBuilder() as ib, T.parallel(0, SIZE) as i, T.Assert(x[i] * x[i] < limit, "too large"):
            T.buffer_store(y, x[i] * x[i], [i])
        return ib.get()

    x = te.placeholder((SIZE,), "int32", name="x")
    y = te.extern([(SIZE,)], [x], lambda ins, outs: loop(ins[0], outs[0]), dtype="int32", name="y")
    return tvm.compile(tvm.IRModule({"main": te.create_prim_func([x, y])}), "llvm")


def run(module: tvm.runtime.Module, first: int) -> bool:
    x = np.arange(first, first + SIZE, dtype=np.int32)
    y = tvm.runtime.tensor(np.zeros(SIZE, np.int32))
    module["main"](tvm.runtime.tensor(x), y)
    return np.array_equal(y.numpy(), x * x)


def test_many_callers_at_once() -> None:
    module = squares(1 << 30)
    with ThreadPoolExecutor(8) as callers:
        assert all(callers.map(lambda first: run(module, first), range(200)))


def test_an_error_in_a_piece_reaches_the_caller() -> None:
    module = squares(500 * 500)
    with pytest.raises(RuntimeError, match="too large"):
        run(module, 0)
    assert run(squares(1 << 30), 0)


@pytest.mark.slow
@pytest.mark.parametrize("count", ["1", "3"])
def test_any_number_of_threads(count: str) -> None:
    calls = "t.test_many_callers_at_once(); t.test_an_error_in_a_piece_reaches_the_caller()"
    env = {"TVM_NUM_THREADS": count, "PYTHONPATH": ":".join(sys.path)}
    code = f"from tests.runtime import test_parallel as t; {calls}"
    subprocess.run([sys.executable, "-c", code], env=env, check=True)


def check_that_helpers_leave_the_callers_processor() -> None:
    """In a process of its own: it pins its thread to one processor after the other."""
    module, processors = squares(1 << 30), os.sched_getaffinity(0)
    run(module, 0)
    threads = set(map(int, os.listdir("/proc/self/task")))
    for processor in processors:
        os.sched_setaffinity(0, {processor})
        found: list[set[int]] = []
        for _ in range(200):  # helpers look for work for a while before they sleep
            time.sleep(0.02)
            run(module, 0)
            found = [os.sched_getaffinity(task) for task in threads if task != os.getpid()]
            if processors - {processor} in found:
                break
        assert processors - {processor} in found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
@pytest.mark.skipif(len(getattr(os, "sched_getaffinity", lambda _: [0])(0)) < 2, reason="needs two processors")
def test_helpers_leave_the_callers_processor() -> None:
    env = {"TVM_NUM_THREADS": "2", "PYTHONPATH": ":".join(sys.path)}
    code = "from tests.runtime import test_parallel as t; t.check_that_helpers_leave_the_callers_processor()"
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
