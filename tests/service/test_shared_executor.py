"""One executor for several threads: right where it is handed over, an error where it is shared, nothing else."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.conftest import WEIGHTS
from tvm_neuron import runtime
from tvm_neuron.errors import ServiceError
from tvm_neuron.runtime import Executor


@pytest.fixture
def executor(library: Path) -> Executor:
    import tvm

    return runtime.executors(tvm.runtime.load_module(str(library)))()


def numbered(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((4, 64)).astype(np.float32)


def is_answer_to(seed: int, found: np.ndarray) -> bool:
    """Within the rounding of both operands to bf16."""
    x = numbered(seed).astype(np.float64)
    return bool((np.abs(found - x @ WEIGHTS) <= 2.0**-7 * (np.abs(x) @ np.abs(WEIGHTS))).all())


def asked(executor: Executor, seed: int) -> np.ndarray:
    executor.set_input("x", numbered(seed))
    executor.run()
    return np.asarray(executor.get_output(0).numpy())


def test_shared_without_a_lock_it_gives_errors_and_no_wrong_result(executor: Executor) -> None:
    wrong, right, refused = list[int](), list[int](), list[str]()

    def client(first: int) -> None:
        for seed in range(first, first + 25):
            try:
                found = asked(executor, seed)
            except ServiceError as error:
                refused.append(str(error))
            else:
                (right if is_answer_to(seed, found) else wrong).append(seed)

    threads = [threading.Thread(target=client, args=(100 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(right) + len(refused) == 100
    assert {text.partition(":")[0] for text in refused} <= {
        "another thread has set input 'x' since this one did",
        "the executor runs in another thread",
        "another thread has run the executor since this one did",
    }


def test_under_a_lock_it_may_be_shared(executor: Executor) -> None:
    lock = threading.Lock()

    def client(seed: int) -> bool:
        with lock:
            return is_answer_to(seed, asked(executor, seed))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(client, range(40)))


def test_it_may_be_handed_over(executor: Executor) -> None:
    executor.set_input("x", numbered(1))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(executor.run).result()
        assert is_answer_to(1, executor.get_output(0).numpy())
        pool.submit(executor.run, x=numbered(2)).result()
        assert is_answer_to(2, executor.get_output(0).numpy())


def test_each_way_to_get_what_is_anothers(executor: Executor) -> None:
    with ThreadPoolExecutor(1) as other:
        executor.run(x=numbered(1))
        assert is_answer_to(1, executor.get_output(0).numpy())
        other.submit(executor.run, x=numbered(2)).result()
        advice = "give each thread an executor of its own, or use tvm_neuron.runtime.service"
        with pytest.raises(ServiceError, match=f"another thread has run the executor since this one did: {advice}"):
            executor.get_output(0)
        with pytest.raises(ServiceError, match=f"another thread has set input 'x' since this one did: {advice}"):
            executor.run()
        executor.run(x=numbered(3))
        assert is_answer_to(3, executor.get_output(0).numpy())


def test_two_runs_at_once(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, gate = threading.Event(), threading.Event()
    run = executor._run

    def slow(given: Any) -> Any:
        inside.set()
        assert gate.wait(30)
        return run(given)

    monkeypatch.setattr(executor, "_run", slow)
    with ThreadPoolExecutor(1) as other:
        first = other.submit(executor.run, x=numbered(1))
        assert inside.wait(30)
        with pytest.raises(ServiceError, match="the executor runs in another thread: give each thread"):
            executor.run()
        gate.set()
        first.result()
        assert is_answer_to(1, executor.get_output(0).numpy())
