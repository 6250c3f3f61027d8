"""Timing: what the clock says about one run of a program, in integer picoseconds."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OriginTiming:
    """One model operator: how long it kept each engine busy, and from when to when it was at work."""

    busy_ps: Mapping[str, int]  # by engine
    start_ps: int
    end_ps: int


@dataclass(frozen=True, slots=True)
class Timing:
    """One run.

    `stalls_ps[queue][other]` is how long `queue` stood still for the queue `other`; "dma" means for its turn at the
    DRAM, "own result" for what it had itself written just before.
    """

    total_ps: int
    cycles: int  # of the PE's clock
    busy_ps: Mapping[str, int]  # by queue
    stalls_ps: Mapping[str, Mapping[str, int]]
    origins: Mapping[int, OriginTiming]  # by index in the program's table
    instructions: int
    macs: int
    dram_read_bytes: int
    dram_written_bytes: int
    dram_bytes_by_kind: Mapping[str, int]  # "weight", "input", "output", "scratch"

    @property
    def latency_us(self) -> float:
        """Microseconds of the whole run."""
        return self.total_ps / 1e6

    @property
    def dram_bytes(self) -> int:
        """Bytes that crossed the DRAM's interface."""
        return self.dram_read_bytes + self.dram_written_bytes


@dataclass(frozen=True, slots=True)
class Event:
    """One dynamic instruction's time on its engine."""

    queue: str
    start_ps: int
    end_ps: int
    mnemonic: str
    origin: str
