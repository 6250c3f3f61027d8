"""EndToEnd: what one request takes, the host with it; the device's part and the host's stay apart."""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_neuron.neff import Pipeline
from tvm_neuron.profile.transfers import Transfer


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """Microseconds. `cpu_us`: of CPU parts, timed on the machine at hand, which is no chip's host; None: not timed.

    `request_us` is what a request takes on the host, once: framework, runtime, driver (`Device.host_request_ns`, a fit
    to published latencies). `calls_us` is of calls after the first, where a model is in several parts. `fit` names
    those that come from constants fitted so, not from a mechanism.
    """

    request_us: float = 0.0
    calls_us: float = 0.0
    transfers_us: float = 0.0
    device_us: float = 0.0
    cpu_us: float | None = None
    fit: tuple[str, ...] = ("request_us", "calls_us")

    @property
    def total_us(self) -> float:
        """All of it, without CPU parts that nobody timed."""
        return self.request_us + self.calls_us + self.transfers_us + self.device_us + (self.cpu_us or 0.0)


def end_to_end(
    compiled: Sequence[Pipeline], moved: Sequence[Transfer], device_us: float, cpu_us: float | None
) -> EndToEnd:
    """Of one request that runs `compiled` one after the other; without any, the CPU's time is all."""
    if not compiled:
        return EndToEnd(cpu_us=cpu_us)
    device = compiled[0].cores[0].device
    return EndToEnd(
        request_us=device.host_request_ns / 1e3,
        calls_us=(len(compiled) - 1) * device.host_call_ns / 1e3,
        transfers_us=sum(row.link_us for row in moved),
        device_us=device_us,
        cpu_us=cpu_us,
    )
