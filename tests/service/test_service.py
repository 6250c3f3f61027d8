"""Models that serve many threads: right answers to the right caller, bounded queues, states, timeouts."""

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.conftest import WEIGHTS
from tvm_neuron.errors import InferTimeoutError, InputError, QueueFullError, ServiceError
from tvm_neuron.runtime import program
from tvm_neuron.runtime.service import LoadedModel, Service, State


@pytest.fixture
def service() -> Iterator[Service]:
    with Service(total_cores=4, environment={}) as made:
        yield made


def numbered(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((4, 64)).astype(np.float32)


def is_answer_to(seed: int, outputs: dict[str, np.ndarray]) -> bool:
    """Whether the product is that of this seed's input, within the rounding of both operands to bf16."""
    x = numbered(seed).astype(np.float64)
    bound = 2.0**-7 * (np.abs(x) @ np.abs(WEIGHTS))
    return bool((np.abs(outputs["y"] - x @ WEIGHTS) <= bound).all()) and outputs["places"].shape == (2, 256)


def test_states(service: Service, library: Path) -> None:
    model = service.load(library, "net")
    assert model.state is State.STANDBY
    with pytest.raises(ServiceError, match=r"model 'net' is in standby, not ready: call its start\(\) first"):
        model.submit({"x": numbered(0)})
    model.start()
    assert is_answer_to(0, model.infer({"x": numbered(0)}))
    model.stop()
    model.start()
    assert is_answer_to(1, model.infer({"x": numbered(1)}))
    service.unload(model)
    with pytest.raises(ServiceError, match="model 'net' was unloaded: load its library again"):
        model.start()
    with pytest.raises(ServiceError, match=r"model 'net' is not loaded \(INVALID_HANDLE\)"):
        service.unload(model)
    assert service.models == ()


def test_several_models_share_the_cores(service: Service, library: Path) -> None:
    models = [service.load(library, replicas=2), service.load(library), service.load(library)]
    assert [model.cores for model in models] == [(0, 1), (2,), (3,)]
    with pytest.raises(ServiceError, match=r"needs 1 NeuronCores of one group; free are: 0 of 4\. Unload a model"):
        service.load(library)
    service.unload(models[0])
    assert service.load(library).cores == (0,)
    with pytest.raises(ServiceError, match="there is no group 1: the groups are 0 to 0"):
        service.load(library, group=1)


def test_bad_inputs_are_the_callers_alone(service: Service, library: Path) -> None:
    model = service.load(library)
    model.start()
    good = [model.submit({"x": numbered(0)})]
    with pytest.raises(InputError, match="shape"):
        model.infer({"x": np.zeros((3, 64), np.float32)})
    assert is_answer_to(0, good[0].result())
    assert is_answer_to(1, model.infer({"x": numbered(1)}))


class Slow:
    """An executor whose run waits until it may go on."""

    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate
        self.outputs: tuple[Any, ...] = ()

    def run(self, **_inputs: Any) -> None:
        self.gate.wait()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


def slow_model(gate: threading.Event, requests: int) -> LoadedModel:
    executor: Any = Slow(gate)
    model = LoadedModel("slow", lambda: executor, (0,), 1, requests)
    model.start()
    return model


def test_a_full_queue(gate: threading.Event) -> None:
    model = slow_model(gate, 3)
    held = [model.submit({}) for _ in range(3)]
    with pytest.raises(QueueFullError, match=r"model 'slow' holds 3 requests, the most that it may \(QUEUE_FULL\)"):
        model.submit({})
    gate.set()
    assert [future.result() for future in held] == [{}, {}, {}]
    assert model.infer({}) == {}


def test_a_timeout_frees_the_place_in_the_queue(gate: threading.Event) -> None:
    model = slow_model(gate, 3)
    running = [model.submit({}), model.submit({})]
    _wait_until(lambda: all(future.running() for future in running))
    with pytest.raises(InferTimeoutError, match=r"model 'slow' gave no result within 0.01 s \(TIMEOUT\)"):
        model.infer({}, timeout=0.01)
    model.submit({})  # would be one too many if the withdrawn request still counted


def test_stopping_refuses_what_waits_and_ends_what_runs(gate: threading.Event) -> None:
    model = slow_model(gate, 5)
    running = [model.submit({}), model.submit({})]
    _wait_until(lambda: all(future.running() for future in running))
    waiting = model.submit({})
    stopper = threading.Thread(target=model.stop)
    stopper.start()
    with pytest.raises(ServiceError, match="model 'slow' was stopped while the request waited"):
        waiting.result(10)
    gate.set()
    stopper.join(10)
    assert [future.result(10) for future in running] == [{}, {}]


@pytest.mark.slow
def test_stress_with_clients_that_vanish(service: Service, library: Path) -> None:
    """Twelve clients at a time, some of which drop their requests and end; their successors carry on."""
    model = service.load(library, replicas=3, requests=16)
    model.start()
    rng, wrong, answered = np.random.default_rng(7), list[str](), list[int]()
    lock = threading.Lock()

    def client(seeds: list[int], vanishes: bool) -> None:
        for seed in seeds:
            try:
                future = _submit(model, seed)
                if vanishes:
                    future.cancel()
                    return
                outputs = future.result(120)
            except (CancelledError, ServiceError) as error:
                wrong.append(f"{seed}: {error}")
                return
            with lock:
                answered.append(seed)
                if not is_answer_to(seed, outputs):
                    wrong.append(f"{seed}: the answer to another request")

    asked = []
    for generation in range(6):
        threads = []
        for number in range(12):
            seeds = [generation * 1000 + number * 10 + each for each in range(8)]
            vanishes = bool(rng.random() < 0.3)
            asked += [] if vanishes else seeds
            threads.append(threading.Thread(target=client, args=(seeds, vanishes)))
            threads[-1].start()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert sorted(answered) == sorted(asked)
    _wait_until(lambda: not model._held)


def _submit(model: LoadedModel, seed: int) -> Future[dict[str, np.ndarray]]:
    while True:
        try:
            return model.submit({"x": numbered(seed)})
        except QueueFullError:
            time.sleep(0.002)


def _wait_until(condition: Any) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never happened")


def test_programs_go_with_their_models(library: Path) -> None:
    """TVM holds every library that was loaded from a file until the process ends; what runs must not stay with it."""
    before = set(program._programs.values())
    with Service(total_cores=2, environment={}) as service:
        models = [service.load(library), service.load(library)]
        for seed, model in enumerate(models):
            model.start()
            assert is_answer_to(seed, model.infer({"x": numbered(seed)}))
        programs = [each for each in program._programs.values() if each not in before]
        assert programs
        watched = [weakref.ref(each) for each in programs]
        del programs
    del service, models, model
    gc.collect()
    assert [each() for each in watched if each() is not None] == []
