"""Models that are started, stopped and unloaded by several threads at once; names; forks."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tvm_neuron.errors import HostError, ServiceError
from tvm_neuron.runtime.service import LoadedModel, Service, State


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


class Nothing:
    """An executor that waits at a gate."""

    outputs: tuple[Any, ...] = ()

    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate

    def run(self) -> None:
        assert self.gate.wait(30)


def model_behind(gate: threading.Event, requests: int = 8) -> LoadedModel:
    executor: Any = Nothing(gate)
    return LoadedModel("gated", lambda: executor, (0,), 1, requests)


def threads_of(model: LoadedModel) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(f"{model.name}/")]


def in_threads(*calls: Any) -> list[BaseException]:
    """Calls all at once; what they raised."""
    begin, raised = threading.Barrier(len(calls)), list[BaseException]()

    def call(function: Any) -> None:
        begin.wait()
        try:
            function()
        except ServiceError as error:
            raised.append(error)

    threads = [threading.Thread(target=call, args=(each,)) for each in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return raised


def test_what_is_unloaded_while_it_is_started_stays_unloaded(gate: threading.Event) -> None:
    gate.set()
    for _ in range(100):
        model = model_behind(gate)
        model.start()
        refused = in_threads(model.unload, model.start, model.start, model.stop)
        assert model.state is State.UNLOADED
        assert {str(error) for error in refused} <= {"model 'gated' was unloaded: load its library again"}
        assert threads_of(model) == []


def test_a_model_that_many_start_and_stop(gate: threading.Event) -> None:
    gate.set()
    model = model_behind(gate)
    for _ in range(50):
        in_threads(model.start, model.stop, model.start, lambda: model.stop(drain=True))
        model.start()
        assert len(threads_of(model)) == 2
        assert model.infer({}, timeout=30) == {}
    model.unload()
    assert threads_of(model) == []


def begun(model: LoadedModel, requests: int) -> list[Future[Any]]:
    """Requests, the first two of which run."""
    model.start()
    futures = [model.submit({}) for _ in range(requests)]
    while not all(future.running() for future in futures[:2]):
        pass
    return futures


def test_draining_answers_what_waits(gate: threading.Event) -> None:
    model = model_behind(gate)
    futures = begun(model, 6)
    ending = threading.Thread(target=model.unload, args=(True,))
    ending.start()
    while model.state is not State.UNLOADED:
        pass
    with pytest.raises(ServiceError, match="model 'gated' is in unloaded, not ready: load its library again"):
        model.submit({})
    assert not any(future.done() for future in futures)
    gate.set()
    assert [future.result(30) for future in futures] == [{}] * 6
    ending.join(30)
    assert threads_of(model) == []


def test_who_does_not_drain_ends_a_drain(gate: threading.Event) -> None:
    model = model_behind(gate)
    futures = begun(model, 6)
    draining, ending = threading.Thread(target=model.stop, args=(True,)), threading.Thread(target=model.unload)
    draining.start()
    while model.state is State.READY:
        pass
    ending.start()
    for future in futures[2:]:
        with pytest.raises(ServiceError, match="model 'gated' was stopped while the request waited"):
            future.result(30)
    gate.set()
    assert [future.result(30) for future in futures[:2]] == [{}, {}]
    for thread in (draining, ending):
        thread.join(30)
    assert threads_of(model) == []


def test_a_result_may_unload_its_model(gate: threading.Event) -> None:
    model = model_behind(gate)
    model.start()
    future = model.submit({})
    ended = threading.Event()

    def unload(_: Any) -> None:
        model.unload()
        ended.set()

    future.add_done_callback(unload)
    gate.set()
    assert ended.wait(30)


def test_a_library_that_this_machine_can_not_run() -> None:
    def fail() -> Any:
        raise HostError("no AVX-512 here")

    model = LoadedModel("late", fail, (0,), 1, 1)
    with pytest.raises(HostError, match="no AVX-512 here"):
        model.start()
    assert model.state is State.STANDBY


def test_names(library: Path) -> None:
    with Service(total_cores=4, environment={}) as service:
        first, second = service.load(library), service.load(library, "net")
        assert (first.name, second.name) == ("model 0", "net")
        with pytest.raises(ServiceError, match="a model 'net' is loaded already: give this one another name"):
            service.load(library, "net")
        third = service.load(library)
        service.unload(first)
        assert {service.load(library).name, third.name} == {"model 0", "model 1"}
        service.unload(second, drain=True)
        assert service.load(library, "net").cores == second.cores


_FORKING = """
import os, sys, threading
import numpy as np
from tvm_neuron.errors import ServiceError
from tvm_neuron.runtime.service import LoadedModel, Service, State

path, x = sys.argv[1], np.ones((4, 64), np.float32)
service = Service(total_cores=4, environment={})
used = service.load(path)
used.start()
expected = used.infer({"x": x})["y"]

gate = threading.Event()
class Waiting:
    outputs = ()
    def run(self):
        gate.wait()
asked = LoadedModel("asked", Waiting, (0,), 1, 8)
asked.start()
futures = [asked.submit({}) for _ in range(4)]

service._lock.acquire()  # as a thread that loads a model holds it
child = os.fork()
if child:
    service._lock.release()
else:
    for future in futures:
        try:
            future.result(30)
            os._exit(1)
        except ServiceError as error:
            assert "model 'asked' runs in the process that this one is a fork of" in str(error), error
    for model in (asked, used):
        try:
            model.infer({"x": x})
            os._exit(2)
        except ServiceError as error:
            assert "is in unloaded, not ready: load its library again" in str(error), error
    again = service.load(path)
    again.start()
    np.testing.assert_array_equal(again.infer({"x": x}, timeout=60)["y"], expected)
    service.close()
    os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
gate.set()
assert [future.result(30) for future in futures] == [{}] * 4
np.testing.assert_array_equal(used.infer({"x": x})["y"], expected)
service.close()
sys.exit(code)
"""


def test_a_fork_does_not_wait_for_its_parents_threads(library: Path) -> None:
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _FORKING, str(library)]
    done = subprocess.run(words, timeout=120, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
