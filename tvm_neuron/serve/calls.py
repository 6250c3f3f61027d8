"""Calls: what both doors of a server do with a request, counted and written down."""

import json
import logging
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TextIO, TypeVar

from kserve.protocol.infer_type import InferRequest, InferResponse

from tvm_neuron.serve.metrics import Metrics
from tvm_neuron.serve.protocol import inputs_of, response_of, status_of, tensors
from tvm_neuron.serve.repository import Repository

Answer = TypeVar("Answer")
_MOST_TOLD = 500  # letters, of what a stranger's request may be a part of


class Log:
    """One object of JSON a line, with the time."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file

    def write(self, event: str, **facts: Any) -> None:
        """An event, and what is to be known of it."""
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **facts}
        print(json.dumps(line, default=str), file=self._file or sys.stderr, flush=True)


class LogHandler(logging.Handler):
    """What libraries log, as lines of ours."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        facts = {"traceback": "".join(traceback.format_exception(*record.exc_info))} if record.exc_info else {}
        self._log.write("library", logger=record.name, level=record.levelname, text=record.getMessage(), **facts)


@dataclass(frozen=True)
class Calls:
    """The models of a server, what it counts, and where it writes."""

    repository: Repository
    metrics: Metrics
    log: Log

    async def infer(
        self, name: str, version: str, protocol: str,
        read: Callable[[], Awaitable[InferRequest]], write: Callable[[InferResponse], Answer],
    ) -> Answer:  # fmt: skip
        """The answer to the request that `read` gives, as `write` makes it.

        Raises:
            NeuronError: whatever is wrong with it, see `protocol.STATUSES`.
        """
        begin, status, told, asked = time.monotonic(), "OK", "", ""
        try:
            served = self.repository.find(name, version)
            version = served.place.version
            request = await read()
            asked = request.id or ""
            return write(response_of(request, served, await served.infer(inputs_of(request))))
        except BaseException as error:
            status, told = status_of(error)[1] if isinstance(error, Exception) else "CANCELLED", str(error)[:_MOST_TOLD]
            if status == "INTERNAL":
                self.metrics.failures.labels(*self._known(name, version)).inc()
                self.log.write("failure", model=name, traceback=traceback.format_exc())
            raise
        finally:
            name, version = self._known(name, version)
            self.metrics.requests.labels(name, version, protocol, status).inc()
            ms = round(1000 * (time.monotonic() - begin), 3)
            facts = {"model": name, "version": version, "protocol": protocol, "status": status, "ms": ms}
            self.log.write("request", **facts, id=asked, **({"error": told} if told else {}))

    async def load(self, name: str) -> None:
        """Loads a model, all its versions.

        Raises:
            NeuronError: see `Repository.load`.
        """
        await self.repository.load(name)
        self.log.write("load", model=name)

    async def unload(self, name: str) -> None:
        """Unloads a model.

        Raises:
            NeuronError: see `Repository.unload`.
        """
        await self.repository.unload(name)
        self.log.write("unload", model=name)

    def metadata(self, name: str, version: str) -> dict[str, Any]:
        """Of a model.

        Raises:
            NotServedError, NotReadyError: see `Repository.find`.
        """
        served = self.repository.find(name, version)
        return {
            "name": name,
            "versions": self.repository.versions(name),
            "platform": "tvm_neuron",
            "inputs": tensors(served.inputs, served.takes_any_rows),
            "outputs": tensors(served.outputs, served.takes_any_rows),
        }

    def _known(self, name: str, version: str) -> tuple[str, str]:
        """For labels, which strangers must not make more of."""
        known = {(place.name, place.version) for place in self.repository.places}
        return (name, version) if (name, version) in known else ("", "")
