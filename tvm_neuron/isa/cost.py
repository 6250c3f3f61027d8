"""Cost: what one instruction takes; small values that add."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """`busy_cycles` of the engine's own clock, `latency_cycles` more until the result can be read.

    The DMA's clock is taken as 1 GHz, so its cycles are nanoseconds.
    """

    busy_cycles: int
    latency_cycles: int
    macs: int = 0
    dram_bytes: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.busy_cycles + other.busy_cycles,
            max(self.latency_cycles, other.latency_cycles),
            self.macs + other.macs,
            self.dram_bytes + other.dram_bytes,
        )
