"""Engines: those of a core, as values. Queues, clocks, dependences, reports and plots follow from the one list here."""

from dataclasses import dataclass

from tvm_neuron.hw import Device

_NANOSECONDS_HZ = 10**9


@dataclass(frozen=True)
class Engine:
    """One engine, whose instructions run in order in a queue of its name, or in several with a number behind it."""

    name: str
    title: str  # in the public interface for kernels and its profiler
    clock: str = ""  # which number of a Device its cycles count in; none: nanoseconds
    queues: int = 0  # 0: one
    reads_late: bool = False  # an instruction waits for what the one before it wrote

    @property
    def queue_names(self) -> tuple[str, ...]:
        """Of its queues."""
        return tuple(f"{self.name}{number}" for number in range(self.queues)) if self.queues else (self.name,)

    def clock_hz(self, device: Device) -> int:
        """In which its cycles count; 0 where the device has no such engine."""
        return int(getattr(device, self.clock)) if self.clock else _NANOSECONDS_HZ


@dataclass(frozen=True)
class Port:
    """A way into a memory that two engines share: one access at a time where the device has one of it."""

    space: str
    engines: tuple[str, str]  # the first is first where both ask at once
    accesses: str  # which number of a Device says how many are possible at a time


# In the order in which files number their queues: a new engine comes last.
ENGINES = (
    Engine("pe", "Tensor", "pe_clock_hz"),  # its sums in PSUM need no earlier result: accumulation is the bank's own
    Engine("act", "Scalar", "act_clock_hz", reads_late=True),
    Engine("pool", "Vector", "pool_clock_hz", reads_late=True),
    Engine("dma", "DMA", queues=8),
    Engine("gpsimd", "GpSimd", "gpsimd_clock_hz", reads_late=True),
)
PORTS = (Port("psum", ("act", "pool"), "psum_accesses"), Port("sbuf", ("pool", "gpsimd"), "sbuf_accesses"))
BY_NAME = {engine.name: engine for engine in ENGINES}
BY_QUEUE = {queue: engine for engine in ENGINES for queue in engine.queue_names}
QUEUES = tuple(BY_QUEUE)
# Those that compute; and all in the order in which reports name them, transfers last.
COMPUTE = tuple(engine.name for engine in ENGINES if engine.clock)
IN_REPORTS = (*COMPUTE, *(engine.name for engine in ENGINES if not engine.clock))


def of_dma(queue: str) -> bool:
    """Whether it is a queue of transfers."""
    return not BY_QUEUE[queue].clock
