"""LoadedModel: a library on NeuronCores that serves the requests of many threads through one bounded queue.

Every core has two threads with an executor each, so that the CPU parts of one request run while the core works on
another. The core itself works on one program at a time.
"""

import threading
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from enum import StrEnum
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from tvm_neuron.errors import InferTimeoutError, QueueFullError, ServiceError
from tvm_neuron.runtime.executor import MakeExecutor
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
        self._held = 0
        self._lock = threading.Lock()  # of the state and of what is held
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Take requests. Raises ServiceError once unloaded."""
        with self._lock:
            if self.state is State.UNLOADED:
                raise ServiceError(f"model '{self.name}' was unloaded: load its library again")
            if self.state is State.READY:
                return
            self.state = State.READY
            self._queue = SimpleQueue()
            for replica in self._replicas:
                for number in range(_THREADS_PER_CORE):
                    work, name = (replica[0], self._queue), f"{self.name}/core {replica[0]}/{number}"
                    thread = threading.Thread(target=self._serve, args=work, name=name, daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def stop(self) -> None:
        """Take no more requests. Those that run end as usual; those that wait get a ServiceError."""
        with self._lock:
            if self.state is not State.READY:
                return
            self.state = State.STANDBY
            queue, threads, self._threads = self._queue, self._threads, []
        self._refuse_waiting(queue)
        for _ in threads:
            queue.put(None)
        for thread in threads:
            thread.join()

    def unload(self) -> None:
        """Stop, for good."""
        self.stop()
        self.state = State.UNLOADED

    def submit(self, inputs: Mapping[str, Any]) -> Future[Outputs]:
        """Queue one inference.

        Raises:
            QueueFullError: the model holds as many requests as it may.
            ServiceError: the model is not started.
        """
        request = Request(dict(inputs))
        with self._lock:
            if self.state is not State.READY:
                raise ServiceError(f"model '{self.name}' is in {self.state}, not ready: call its start() first")
            if self._held >= self.most_requests:
                raise QueueFullError(
                    f"model '{self.name}' holds {self._held} requests, the most that it may (QUEUE_FULL): wait for one "
                    "to end, load it with requests= more, or set NEURON_MAX_NUM_INFERS"
                )
            self._held += 1
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
            raise InferTimeoutError(
                f"model '{self.name}' gave no result within {timeout} s (TIMEOUT); the hardware model runs much slower "
                "than a chip: allow more, or none"
            ) from None

    def _serve(self, core: int, queue: "SimpleQueue[Request | None]") -> None:
        executor = self._make_executor()
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
            try:
                request.future.set_exception(ServiceError(f"model '{self.name}' was stopped while the request waited"))
            except InvalidStateError:  # its client has cancelled it
                continue

    def _forget(self, _future: Future[Outputs]) -> None:
        with self._lock:
            self._held -= 1
