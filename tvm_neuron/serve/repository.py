"""Repository: the models of a server, by name and version: loaded, asked and unloaded while it runs."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray

from tvm_neuron.errors import InferTimeoutError, InputError, NotReadyError, NotServedError, ServiceError
from tvm_neuron.hw import load_device
from tvm_neuron.neff import TensorInfo, check_inputs
from tvm_neuron.runtime import manifest, report
from tvm_neuron.runtime.contents import virtual_machines
from tvm_neuron.runtime.executor import executors
from tvm_neuron.runtime.service import LoadedModel, Service
from tvm_neuron.serve.batcher import Arrays, Batcher
from tvm_neuron.serve.metrics import Metrics
from tvm_neuron.serve.settings import Place, Settings

_CARRIED = frozenset(
    ["bool", "float16", "float32", "float64", *(f"{s}int{bits}" for s in ("", "u") for bits in (8, 16, 32, 64))]
)


class Served:
    """A version of a model that is loaded."""

    def __init__(self, place: Place, library: Any, model: LoadedModel, settings: Settings, metrics: Metrics) -> None:
        self.place, self.model, self._settings, self._metrics = place, model, settings, metrics
        self._shape = executors(library)()  # asked for shapes only
        self.inputs: tuple[TensorInfo, ...] = self._shape.inputs
        self.outputs: tuple[TensorInfo, ...] = self._shape.outputs
        self._check_dtypes()
        self.takes_any_rows = self._shape.batch is not None
        buckets = range(len(virtual_machines(library)))
        self._device_seconds = [report(library, bucket).latency_us / 1e6 for bucket in buckets]
        self._labels = {"model": place.name, "version": place.version}
        window = settings.batch_window_us / 1e6
        rows = self._shape.batch or 0 if window else 0
        self._under_way: set[asyncio.Timeout] = set()
        self._gave_up = False
        self.batcher = Batcher(model, rows, window, settings.queue, self._called)

    async def infer(self, inputs: Arrays) -> Arrays:
        """The outputs by name, in time.

        Raises:
            InputError: the inputs don't fit the model, or are more rows than the server takes.
            InferTimeoutError: it took longer than `request_timeout_seconds`.
            NotReadyError: the server ends before it is done.
            QueueFullError, NeuronError: see `Batcher.infer`.
        """
        self._check(inputs)
        held, begin = self._metrics.held.labels(**self._labels), time.monotonic()
        held.inc()
        try:
            async with asyncio.timeout(self._settings.request_timeout_seconds) as until:
                self._under_way.add(until)
                return await self.batcher.infer(inputs)
        except TimeoutError:
            if self._gave_up:
                raise NotReadyError("the server ends, and has not waited longer than --drain-seconds") from None
            raise InferTimeoutError(
                f"model '{self.place.name}' gave no answer within {self._settings.request_timeout_seconds:g} s "
                "(TIMEOUT): start the server with --request-timeout-seconds more, or ask less at once"
            ) from None
        finally:
            held.dec()
            self._under_way.discard(until)
            self._metrics.host.labels(**self._labels).observe(time.monotonic() - begin)

    def give_up(self) -> None:
        """Ends all that is under way with an error."""
        self._gave_up = True
        for until in self._under_way:
            until.reschedule(asyncio.get_running_loop().time())

    def _check_dtypes(self) -> None:
        """Raises ServiceError if the protocol's SDK does not carry a tensor."""
        for info in (*self.inputs, *self.outputs):
            if info.dtype not in _CARRIED:
                raise ServiceError(
                    f"'{self.place.path}': tensor '{info.name}' is {info.dtype}, which the protocol's SDK does not "
                    "carry; it carries float16, float32, float64, integers and bool: give the model such"
                )

    def _check(self, inputs: Arrays) -> None:
        """Before it waits with others: whatever a library says of wrong inputs, it would say of all that are joined."""
        check_inputs([self._expected(info, inputs.get(info.name)) for info in self.inputs], inputs)
        if not self.takes_any_rows:
            return
        rows = {len(array) for array in inputs.values()}
        if len(rows) != 1 or not 1 <= min(rows) <= max(rows) <= self._settings.rows:
            given = ", ".join(f"'{name}' {len(array)}" for name, array in inputs.items())
            raise InputError(
                f"every input must have the same number of rows, from 1 to {self._settings.rows} (--rows): {given}"
            )
        self._shape.runs_of(inputs)

    def _expected(self, info: TensorInfo, array: NDArray[Any] | None) -> TensorInfo:
        """The input, with what it leaves open as in the array."""
        if array is None or array.ndim != len(info.shape):
            return info
        free = [size < 0 or (self.takes_any_rows and axis == 0) for axis, size in enumerate(info.shape)]
        sizes = zip(free, array.shape, info.shape, strict=True)
        return replace(info, shape=tuple(given if is_free else size for is_free, given, size in sizes))

    def _called(self, inputs: Arrays, requests: int) -> None:
        bucket, runs = self._shape.runs_of(inputs)
        rows = len(next(iter(inputs.values()))) if self.takes_any_rows else 1
        self._metrics.rows.labels(**self._labels).observe(rows)
        self._metrics.together.labels(**self._labels).observe(requests)
        self._metrics.device.labels(**self._labels).inc(runs * self._device_seconds[bucket])


class Repository:
    """The files that may be served, and those that are loaded. Its methods are for one event loop."""

    def __init__(self, places: Sequence[Place], settings: Settings, metrics: Metrics) -> None:
        self.places, self._settings, self._metrics = places, settings, metrics
        total = None if settings.cores is None else settings.cores * len(places)
        self._service = Service(total)
        self._loaded: dict[tuple[str, str], Served] = {}
        self._changing = asyncio.Lock()
        self.is_draining = False

    def versions(self, name: str) -> list[str]:
        """The versions of a model that there are files of, the newest last.

        Raises:
            NotServedError: there is none.
        """
        found = sorted((place.version for place in self.places if place.name == name), key=int)
        if not found:
            names = ", ".join(dict.fromkeys(place.name for place in self.places))
            raise NotServedError(f"there is no model '{name}'; served are: {names}")
        return found

    def find(self, name: str, version: str = "") -> Served:
        """The version of a model, the newest that is loaded if none is named.

        Raises:
            NotServedError: there is no such model or version.
            NotReadyError: it is not loaded, or the server is about to end.
        """
        known = self.versions(name)
        if version and version not in known:
            raise NotServedError(f"model '{name}' has no version {version}; it has {', '.join(known)}")
        if self.is_draining:
            raise NotReadyError("the server is about to end and takes no more requests")
        for each in [version] if version else reversed(known):
            if (name, each) in self._loaded:
                return self._loaded[name, each]
        raise NotReadyError(f"model '{name}' is not loaded: POST /v2/repository/models/{name}/load")

    def is_loaded(self, place: Place) -> bool:
        """Whether it takes requests."""
        return (place.name, place.version) in self._loaded

    @property
    def is_ready(self) -> bool:
        """Whether every model is loaded."""
        return not self.is_draining and all(map(self.is_loaded, self.places))

    @property
    def held(self) -> int:
        """How many requests wait or run."""
        return sum(served.batcher.held for served in self._loaded.values())

    async def load(self, name: str) -> None:
        """Loads all versions of a model that are not.

        Raises:
            NotServedError: there is no such model.
            NeuronError: a file can't be loaded, or there are no cores for it.
        """
        self.versions(name)
        async with self._changing:
            for place in self.places:
                if place.name == name and not self.is_loaded(place):
                    self._loaded[place.name, place.version] = await asyncio.to_thread(self._load, place)
                    self._mark(place, 1)

    async def unload(self, name: str) -> None:
        """Unloads all versions of a model, when they have answered what they hold.

        Raises:
            NotServedError: there is no such model.
        """
        self.versions(name)
        async with self._changing:
            for place in self.places:
                if place.name == name and self.is_loaded(place):
                    served = self._loaded.pop((place.name, place.version))
                    self._mark(place, 0)
                    await served.batcher.close()
                    await asyncio.to_thread(self._service.unload, served.model, True)

    def give_up(self) -> None:
        """Ends all requests with an error; programs that run can't be stopped, and end with the process."""
        for served in self._loaded.values():
            served.give_up()

    async def close(self) -> None:
        """Unloads everything."""
        for name in dict.fromkeys(place.name for place in self.places):
            await self.unload(name)

    def _load(self, place: Place) -> Served:
        try:
            library = tvm.runtime.load_module(str(place.path))
        except Exception as error:  # whatever the dynamic loader finds wrong
            text = str(error).splitlines()[-1]
            raise ServiceError(f"'{place.path}' can't be loaded as a compiled library: {text}") from error
        described = manifest(library)
        per_copy = int(described["options"].get("pipeline_cores", 1))
        copies = 1 if self._settings.cores is None else self._settings.cores // per_copy
        if not copies:
            raise ServiceError(
                f"'{place.path}' takes {per_copy} cores: start the server with --cores {per_copy} or more"
            )
        load_device(str(described["device"]))
        # the batcher keeps to the queue's length; what it gave up may still run here
        most = self._settings.queue + 2 * copies
        model = self._service.load(library, f"{place.name}:{place.version}", replicas=copies, requests=most)
        try:
            model.start()
            return Served(place, library, model, self._settings, self._metrics)
        except Exception:
            self._service.unload(model)
            raise

    def _mark(self, place: Place, value: int) -> None:
        self._metrics.loaded.labels(place.name, place.version).set(value)


def as_arrays(named: Sequence[tuple[str, Any]]) -> Arrays:
    """By name.

    Raises:
        InputError: a name is there twice.
    """
    found: Arrays = {}
    for name, array in named:
        if name in found:
            raise InputError(f"input '{name}' is given twice")
        found[name] = np.ascontiguousarray(array)
    return found
