"""results: jobs in processes of Ray, on this machine or a cluster, as they end; a worker that dies ends no more than
its job, which is tried again.
"""

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TypeVar

from tvm_neuron.errors import OptionError, from_extra

Job = TypeVar("Job")
Result = TypeVar("Result")

RETRIES = 2
_STORE_BYTES = 128 << 20  # jobs and results are small: models are read where they are compiled
_PATIENCE_SECONDS = 10
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


@dataclass(frozen=True)
class Lost:
    """What becomes of a job whose worker died, each time that it was tried."""

    reason: str


def is_there() -> bool:
    """Whether the extra `sweep` is installed."""
    return find_spec("ray") is not None


def results(
    task: Callable[..., Result], jobs: Sequence[Job], given: Sequence[Any] = (), *, processes: int | None = None,
    address: str = "", jobs_a_process: int = 0,
) -> Iterator[tuple[Job, Result | Lost]]:  # fmt: skip
    """Each job with what `task` makes of it, and of what is `given` to all, in the order in which they end.

    `task` is called in processes as `connected` has them; each is left after `jobs_a_process` jobs (0: never). What is
    given may be large: it is sent once, and arrays in it can't be written to.

    Raises:
        OptionError: Ray is not installed, or there is no such cluster.
    """
    if not jobs:
        return
    with connected(processes, address) as ray:
        called = ray.remote(max_retries=RETRIES, max_calls=jobs_a_process)(lambda *all_: task(*all_))  # functions only
        sent = [ray.put(each) for each in given]
        waiting = {called.remote(job, *sent): job for job in jobs}
        while waiting:
            (ended, *_), _ = ray.wait(list(waiting), num_returns=1)
            yield waiting.pop(ended), _result(ray, ended)


def _result(ray: ModuleType, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError) as error:
        first = str(error).strip().splitlines()[0]
        return Lost(f"its worker died {RETRIES + 1} times: {first}")


@contextmanager
def connected(processes: int | None = None, address: str = "") -> Iterator[ModuleType]:
    """Ray, with `processes` processes on this machine (one for each core), which end with the `with` block.

    Or that of the cluster at `address`, whose nodes have to have this package and the files that jobs read. A Ray that
    this process uses already is used.

    Raises:
        OptionError: Ray is not installed, or there is no such cluster.
    """
    with from_extra("sweep", "what runs in several processes"):
        import ray
    if ray.is_initialized() and not address:
        yield ray
        return
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address:
        try:
            _knock(address)
            ray.init(address=address, **quiet)
        except (OSError, ValueError, RuntimeError) as error:
            told = str(error).strip().splitlines()[0]
            raise OptionError(f"no cluster of Ray answers at '{address}': {told}") from error
    else:
        ray.init(
            address="local", num_cpus=processes or os.cpu_count(), object_store_memory=_STORE_BYTES,
            include_dashboard=False, _system_config={"task_oom_retries": RETRIES}, **quiet,
        )  # fmt: skip
    try:
        yield ray
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Whether anybody is at HOST:PORT; Ray itself would go on asking for minutes.

    Raises:
        OSError: nobody is.
        ValueError: there is no such port.
    """
    host, separator, port = address.rpartition(":")
    if separator and "/" not in host:
        socket.create_connection((host, int(port)), timeout=_PATIENCE_SECONDS).close()
