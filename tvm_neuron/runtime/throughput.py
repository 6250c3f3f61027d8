"""What a number of cores, a queue depth and a batch size give, by the modelled times of a compiled library.

A closed queue: so many requests are always under way, each of which needs the host's link for its tensors, a host call,
and a core (or, of a pipeline, all its cores one after the other). All these times are fixed, so the rate is what the
tightest of three lets through: the requests there are over the time that one takes alone, the slowest core, the link.
The time of CPU parts is not modelled; it is what you measure and give as `host_us`.
"""

from dataclasses import asdict, dataclass
from typing import Any

from tvm_neuron.errors import OptionError
from tvm_neuron.hw import Device, load_device
from tvm_neuron.runtime.contents import Library, manifest
from tvm_neuron.runtime.report import report


@dataclass(frozen=True)
class Throughput:
    """`requests_per_second` is of runs, `items_per_second` of their batch's rows; `bound` names what limits it."""

    device: str
    cores: int
    queue_depth: int
    batch: int
    requests_per_second: float
    items_per_second: float
    latency_us: float
    bound: str

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def throughput(library: Library, cores: int = 1, queue_depth: int | None = None, host_us: float = 0.0) -> Throughput:
    """The steady state of `cores` cores with `queue_depth` requests under way (twice the cores without it).

    The batch is that of the library. `host_us` is what CPU parts take for one request, on a host with a core for each.

    Raises:
        OptionError: fewer than one core or request.
    """
    depth = 2 * cores if queue_depth is None else queue_depth
    if cores < 1 or depth < 1:
        raise OptionError(f"throughput of {cores} cores and {depth} requests: both must be at least 1")
    described = manifest(library)
    found, device = report(library), load_device(described["device"])
    carried = sum(row.bytes for row in found.transfers)
    batch = int(described["inputs"][0]["shape"][0]) if described["inputs"] and described["inputs"][0]["shape"] else 1
    return steady_state(device, found.latency_us, carried, cores, depth, max(batch, 1), host_us)


def steady_state(
    device: Device, core_us: float, carried_bytes: int, cores: int, depth: int, batch: int, host_us: float = 0.0
) -> Throughput:
    """The same from the times themselves: of one request on its core, and the bytes that it carries."""
    link_us = 1e6 * carried_bytes / device.host_bytes_per_second
    call_us = device.host_call_ns / 1e3
    alone_us = link_us + call_us + core_us + host_us
    rates = {
        "requests": depth / alone_us,
        "cores": cores / core_us if core_us else float("inf"),
        "link": 1 / link_us if link_us else float("inf"),
    }
    bound = min(rates, key=lambda name: rates[name])
    per_us = rates[bound]
    return Throughput(
        device.name, cores, depth, batch, per_us * 1e6, per_us * 1e6 * batch, depth / per_us, bound
    )  # fmt: skip
