"""LoadedModel: a library on NeuronCores that serves the requests of many threads through one bounded queue.

Every core has two threads with an executor each, so that the CPU parts of one request run while the core works on
another. The core itself works on one program at a time. In the child of a fork, which has none of these threads, the
model is unloaded, and what its parent asked for ends with an error.
"""

import asyncio
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakSet

import numpy as np

from tvm_neuron.errors import InferTimeoutError, QueueFullError, ServiceError
from tvm_neuron.runtime.executor import Executor, MakeExecutor
from tvm_neuron.runtime.program import on_core

_THREADS_PER_CORE = 2
Outputs = dict[str, np.ndarray]


class State(StrEnum):
    """What a loaded model does: STANDBY takes no requests, READY does, UNLOADED never will again."""

    STANDBY = "standby"
    READY = "ready"
    UNLOADED = "unloaded"


@dataclass
class Request:
    """One inference: the inputs by name, and the promise of the outputs by name."""

    inputs: Mapping[str, Any]
    future: Future[Outputs] = field(default_factory=Future)


class LoadedModel:
    """A library on `cores`; made by `Service.load`. Holds at most `most_requests`, those that run among them."""

    def __init__(
        self, name: str, make_executor: MakeExecutor, cores: tuple[int, ...], per_replica: int, most_requests: int
    ) -> None:
        self.name = name
        self.cores = cores
        self.most_requests = most_requests
        self.state = State.STANDBY
        self._replicas = [cores[at : at + per_replica] for at in range(0, len(cores), per_replica)]
        self._make_executor = make_executor
        self._queue: SimpleQueue[Request | None] = SimpleQueue()
        self._held: set[Future[Outputs]] = set()
        self._lock = threading.Lock()  # of the state, the threads and what is held
        self._threads: list[threading.Thread] = []
        _models.add(self)

    def start(self) -> None:
        """Take requests.

        Raises:
            ServiceError: it was unloaded.
            NeuronError: this machine can't run the library.
        """
        with self._lock:
            if self.state is State.UNLOADED:
                raise ServiceError(f"model '{self.name}' was unloaded: load its library again")
            if self.state is State.READY:
                return
            made = [(core[0], n, self._make_executor()) for core in self._replicas for n in range(_THREADS_PER_CORE)]
            self.state = State.READY
            self._queue = SimpleQueue()
            for core, number, executor in made:
                work, name = (core, executor, self._queue), f"{self.name}/core {core}/{number}"
                thread = threading.Thread(target=self._serve, args=work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def stop(self, drain: bool = False) -> None:
        """Take no more requests, and return when all threads have ended.

        Requests that run end as usual. Those that wait get a ServiceError, or with `drain` their results.
        """
        self._end(State.STANDBY, drain)

    def unload(self, drain: bool = False) -> None:
        """Stop, for good."""
        self._end(State.UNLOADED, drain)

    def _end(self, state: State, drain: bool) -> None:
        with self._lock:
            self.state = state if self.state is not State.UNLOADED else self.state
            queue, threads = self._queue, tuple(self._threads)
        if not drain:
            self._refuse_waiting(queue)
        for _ in threads:  # also for those whose end was just taken out of the queue
            queue.put(None)
        for thread in threads:
            if thread is not threading.current_thread():  # which may be here as it tells of a result
                thread.join()
        with self._lock:
            self._threads = [thread for thread in self._threads if thread not in threads]

    def submit(self, inputs: Mapping[str, Any]) -> Future[Outputs]:
        """Queue one inference.

        Raises:
            QueueFullError: the model holds as many requests as it may.
            ServiceError: the model is not started.
        """
        request = Request(dict(inputs))
        with self._lock:
            if self.state is not State.READY:
                advice = "load its library again" if self.state is State.UNLOADED else "call its start() first"
                raise ServiceError(f"model '{self.name}' is in {self.state}, not ready: {advice}")
            held = len(self._held)
            if held >= self.most_requests:
                raise QueueFullError(
                    f"model '{self.name}' holds {held} requests, the most that it may (QUEUE_FULL): wait for one "
                    "to end, load it with requests= more, or set NEURON_MAX_NUM_INFERS"
                )
            self._held.add(request.future)
            request.future.add_done_callback(self._forget)
            self._queue.put(request)
        return request.future

    def infer(self, inputs: Mapping[str, Any], timeout: float | None = None) -> Outputs:
        """The outputs by name, at most `timeout` seconds later.

        Raises:
            InferTimeoutError: it took longer. A request that still waited is withdrawn; of one that runs the result
                is dropped.
            InputError: the inputs don't fit the model.
            QueueFullError, ServiceError: see `submit`; the model was stopped meanwhile.
        """
        future = self.submit(inputs)
        try:
            return future.result(timeout)
        except FutureTimeoutError:
            if future.done():
                raise
            future.cancel()
            raise self._too_late(timeout) from None

    async def infer_async(self, inputs: Mapping[str, Any], timeout: float | None = None) -> Outputs:
        """The same as `infer` for asyncio: other tasks run meanwhile, and a task that is cancelled withdraws it.

        Raises:
            InferTimeoutError, InputError, QueueFullError, ServiceError: see `infer`.
        """
        future = self.submit(inputs)
        try:
            async with asyncio.timeout(timeout) as until:
                return await asyncio.wrap_future(future)
        except TimeoutError:
            if not until.expired():
                raise
            raise self._too_late(timeout) from None

    def _too_late(self, timeout: float | None) -> InferTimeoutError:
        return InferTimeoutError(
            f"model '{self.name}' gave no result within {timeout} s (TIMEOUT); the hardware model runs much slower "
            "than a chip: allow more, or none"
        )

    def _serve(self, core: int, executor: Executor, queue: "SimpleQueue[Request | None]") -> None:
        names = [info.name for info in executor.outputs]
        while (request := queue.get()) is not None:
            if not request.future.set_running_or_notify_cancel():
                continue
            try:
                with on_core(core):
                    executor.run(**request.inputs)
                found = [executor.get_output(index).numpy() for index in range(len(names))]
            except BaseException as error:
                request.future.set_exception(error)
            else:
                request.future.set_result(dict(zip(names, found, strict=True)))

    def _refuse_waiting(self, queue: "SimpleQueue[Request | None]") -> None:
        while True:
            try:
                request = queue.get_nowait()
            except Empty:
                return
            if request is None:
                continue
            with suppress(InvalidStateError):  # its client has cancelled it
                request.future.set_exception(ServiceError(f"model '{self.name}' was stopped while the request waited"))

    def _forget(self, future: Future[Outputs]) -> None:
        with self._lock:
            self._held.discard(future)

    def leave_behind(self) -> None:
        """In the child of a fork, where no other thread goes on, and locks may be held by those that are gone."""
        self._lock = threading.Lock()
        self.state, self._threads = State.UNLOADED, []
        lost = ServiceError(
            f"model '{self.name}' runs in the process that this one is a fork of, where its threads and results are: "
            "load the library after the fork"
        )
        for future in list(self._held):
            future._condition = threading.Condition()
            with suppress(InvalidStateError):  # it has its result
                future.set_exception(lost)


_models: WeakSet[LoadedModel] = WeakSet()


def _leave_models_behind() -> None:
    for model in list(_models):
        model.leave_behind()


os.register_at_fork(after_in_child=_leave_models_behind)
