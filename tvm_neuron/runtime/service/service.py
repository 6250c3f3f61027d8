"""Service: the NeuronCores of one process, and the models loaded onto them."""

import os
import threading
from collections.abc import Mapping
from itertools import count
from weakref import WeakSet

import tvm

from tvm_neuron.errors import ServiceError
from tvm_neuron.hw import load_device
from tvm_neuron.runtime.contents import Library, manifest
from tvm_neuron.runtime.executor import executors
from tvm_neuron.runtime.service.cores import Group, make_groups, most_requests, visible_cores
from tvm_neuron.runtime.service.model import LoadedModel


class Service:
    """Loads models onto groups of NeuronCores; see `service.cores` for the environment variables.

    `total_cores` are those of the instance; without it, those of one chip of the first model's device.
    """

    def __init__(self, total_cores: int | None = None, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = dict(environment)
        self._total = total_cores
        self._groups: list[Group] | None = None
        self._lock = threading.Lock()
        self._homes: dict[LoadedModel, Group] = {}
        _services.add(self)

    @property
    def models(self) -> tuple[LoadedModel, ...]:
        """The loaded models."""
        with self._lock:
            return tuple(self._homes)

    def load(
        self,
        library: Library | str | os.PathLike[str],
        name: str = "",
        *,
        replicas: int = 1,
        group: int | None = None,
        requests: int | None = None,
    ) -> LoadedModel:
        """Put a library (or the file at a path) onto free cores of a group, of the first that has enough.

        `replicas` copies share the requests: data parallelism. `requests` is the most that the model holds at once, its
        cores and three more without it. The model is in standby until its `start()`.

        Raises:
            ServiceError: no group has the cores, or a model of that name is loaded.
            NeuronError: the library was not compiled by tvm_neuron.
        """
        if isinstance(library, str | os.PathLike):
            library = tvm.runtime.load_module(os.fspath(library))
        described = manifest(library)
        per_replica = int(described["options"].get("pipeline_cores", 1))
        wanted = replicas * per_replica
        with self._lock:
            groups = self._visible_groups(str(described["device"]))
            name = self._free_name(name)
            most = most_requests(wanted, self._environment) if requests is None else requests
            make = executors(library)
            home, cores = _place(groups, group, wanted)
            model = LoadedModel(name, make, cores, per_replica, most)
            self._homes[model] = home
        return model

    def unload(self, model: LoadedModel, drain: bool = False) -> None:
        """Stop a model, with `drain` when it has answered what waits, and free its cores.

        Raises:
            ServiceError: it is not loaded here.
        """
        with self._lock:
            if model not in self._homes:
                raise ServiceError(f"model '{model.name}' is not loaded (INVALID_HANDLE)")
            home = self._homes.pop(model)
        model.unload(drain)
        with self._lock:
            home.release(model.cores)

    def close(self, drain: bool = False) -> None:
        """Unload everything."""
        for model in self.models:
            self.unload(model, drain)

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def forget_threads(self) -> None:
        """In the child of a fork: the lock may be held by a thread that is gone."""
        self._lock = threading.Lock()

    def _free_name(self, wanted: str) -> str:
        taken = {model.name for model in self._homes}
        if wanted in taken:
            raise ServiceError(f"a model '{wanted}' is loaded already: give this one another name, or unload that one")
        return wanted or next(name for n in count() if (name := f"model {n}") not in taken)

    def _visible_groups(self, device: str) -> list[Group]:
        if self._groups is None:
            total = self._total or load_device(device).cores_per_chip
            self._groups = make_groups(visible_cores(total, self._environment), self._environment)
        return self._groups


def _place(groups: list[Group], number: int | None, wanted: int) -> tuple[Group, tuple[int, ...]]:
    if number is not None and not 0 <= number < len(groups):
        raise ServiceError(f"there is no group {number}: the groups are 0 to {len(groups) - 1}")
    for group in groups if number is None else [groups[number]]:
        cores = group.take(wanted)
        if cores is not None:
            return group, cores
    free = ", ".join(f"{len(group.cores) - len(group.used)} of {len(group.cores)}" for group in groups)
    raise ServiceError(
        f"the model needs {wanted} NeuronCores of one group; free are: {free}. Unload a model, ask for fewer replicas, "
        "or make larger groups (NEURONCORE_GROUP_SIZES)"
    )


_services: WeakSet[Service] = WeakSet()


def _forget_parents_threads() -> None:
    for service in list(_services):
        service.forget_threads()


os.register_at_fork(after_in_child=_forget_parents_threads)
