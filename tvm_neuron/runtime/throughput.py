"""What a number of cores, a queue depth and a batch size give, by the modelled times of a compiled library.

A closed queue: so many requests are always under way, each of which needs the host's link for its tensors, a host call,
and a core, or all cores of a pipeline one after the other, which takes the next when its slowest stage is through. All
these times are fixed, so the rate is what the tightest of these lets through: the requests there are over the time that
one takes alone, the link, the cores, which the clock knows alone and beside the others that share their chip's DRAM.
The time of CPU parts is not modelled; it is what you measure and give as `host_us`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tvm_neuron.errors import OptionError
from tvm_neuron.hw import Device, is_in_instance, load_device, load_instance
from tvm_neuron.neff import Pipeline
from tvm_neuron.profile import Report, interval_us, make_report
from tvm_neuron.runtime.contents import Library, manifest
from tvm_neuron.runtime.report import report


@dataclass(frozen=True)
class Throughput:
    """`requests_per_second` is of runs, `items_per_second` of their batch's rows; `bound` names what limits it."""

    device: str
    cores: int
    pipeline_cores: int  # that one copy of the model takes
    queue_depth: int
    batch: int
    requests_per_second: float
    items_per_second: float
    latency_us: float
    bound: str

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def throughput(
    library: Library | Pipeline, cores: int | None = None, queue_depth: int | None = None, host_us: float = 0.0
) -> Throughput:
    """The steady state of `cores` cores with `queue_depth` requests under way.

    Without them: the cores that one copy of the model takes (1, or those of its pipeline), and twice as many requests.
    The batch is that of the library, or of the program. `host_us` is what CPU parts take for one request, on a host
    with a core for each.

    Raises:
        OptionError: fewer than one core or request; the cores don't make whole pipelines; a host time below 0.
    """
    device, options, shapes, found = _known(library)
    per_copy = sum(library.replicas) if isinstance(library, Pipeline) else int(options.get("pipeline_cores", 1))
    cores = per_copy if cores is None else cores
    depth = 2 * cores if queue_depth is None else queue_depth
    if cores < 1 or depth < 1:
        raise OptionError(f"throughput of {cores} cores and {depth} requests: both must be at least 1")
    if not host_us >= 0:
        raise OptionError(f"throughput with host_us {host_us}: it is a time in microseconds, at least 0")
    if cores % per_copy:
        raise OptionError(
            f"throughput of {cores} cores: the library was compiled as a pipeline over {per_copy} (pipeline_cores), so "
            f"that copies of it take a multiple of {per_copy}: ask for one, or compile it for another number"
        )
    carried = sum(row.bytes for row in found.transfers)
    batch = int(shapes[0][0]) if shapes and shapes[0] else 1
    instance = str(options.get("instance", ""))
    shared_us = 0.0
    if cores > per_copy and (instance or is_in_instance(device)):
        where, copies = load_instance(instance, device), cores // per_copy
        shared_us = sum(interval_us(part, where, copies) for part in found.parts if isinstance(part, Pipeline))
    times = Times(found.latency_us, found.interval_us, per_copy, host_us, shared_us)
    return steady_state(device, times, carried, cores, depth, max(batch, 1))


def _known(compiled: Library | Pipeline) -> tuple[Device, Mapping[str, Any], list[Sequence[int]], Report]:
    """The device, the options, the inputs' shapes and the report of a library, or of one program."""
    if isinstance(compiled, Pipeline):
        first = compiled.cores[0]
        own = make_report(first.placement, [compiled])
        return first.device, first.options, [info.shape for info in compiled.inputs], own
    described = manifest(compiled)
    shapes = [row["shape"] for row in described["inputs"]]
    return load_device(described["device"]), described["options"], shapes, report(compiled)


@dataclass(frozen=True)
class Times:
    """Of one request: on the cores of a copy from begin to end, between two that it begins, and of CPU parts.

    `shared_us` is the time between two where all the cores work that share a chip's DRAM; 0 where it is not known, as
    for a device that is in no known instance.
    """

    latency_us: float
    interval_us: float
    pipeline_cores: int = 1
    host_us: float = 0.0
    shared_us: float = 0.0


def steady_state(device: Device, times: Times, carried_bytes: int, cores: int, depth: int, batch: int) -> Throughput:
    """The same from the times themselves, and the bytes that a request carries between the host and the cores."""
    link_us = 1e6 * carried_bytes / device.host_bytes_per_second
    call_us = device.host_call_ns / 1e3
    alone_us = link_us + call_us + times.latency_us + times.host_us
    copies = cores // times.pipeline_cores
    rates = {
        "requests": depth / alone_us,
        "cores": copies / times.interval_us if times.interval_us else float("inf"),
        "link": 1 / link_us if link_us else float("inf"),
        "DRAM": copies / times.shared_us if times.shared_us else float("inf"),
    }
    bound = min(rates, key=lambda name: rates[name])
    per_us = rates[bound]
    rate, latency_us = per_us * 1e6, depth / per_us
    return Throughput(device.name, cores, times.pipeline_cores, depth, batch, rate, rate * batch, latency_us, bound)
