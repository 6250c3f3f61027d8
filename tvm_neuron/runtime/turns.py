"""Turns: threads that share an executor are told so, before one of them takes what belongs to another."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tvm_neuron.errors import ServiceError

_ADVICE = "give each thread an executor of its own, or use tvm_neuron.runtime.service, whose threads have theirs"


class _Own(threading.local):
    """What this thread did last: the value that it gave to each input, and its run."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.run: object = None


class Turns:
    """Of one executor. Handing it over to another thread is no sharing: that one sets, runs and reads what it needs."""

    def __init__(self) -> None:
        self._own = _Own()
        self._busy = threading.Lock()
        self._run: object = None

    def has_set(self, name: str, value: object) -> None:
        """This thread gave `value` to an input."""
        self._own.values[name] = value

    @contextmanager
    def running(self, values: Mapping[str, object]) -> Iterator[None]:
        """Inside the `with` block the executor runs with `values`.

        Raises:
            ServiceError: it is running in another thread, or another thread has replaced an input of this one.
        """
        for name, value in self._own.values.items():
            if values[name] is not value:
                raise ServiceError(f"another thread has set input '{name}' since this one did: {_ADVICE}")
        if not self._busy.acquire(blocking=False):
            raise ServiceError(f"the executor runs in another thread: {_ADVICE}")
        try:
            self._run = self._own.run = object()
            yield
        finally:
            self._busy.release()

    def check_outputs(self) -> None:
        """This thread may read the outputs of the last run.

        Raises:
            ServiceError: it ran the executor, and another thread has done so since.
        """
        if self._own.run not in (None, self._run):
            raise ServiceError(f"another thread has run the executor since this one did: {_ADVICE}")
