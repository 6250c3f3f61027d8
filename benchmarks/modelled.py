"""Modelled: a row of the table of networks on modelled chips."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Modelled:
    """One network on one chip; the numbers are the model's, but for the seconds and the error."""

    network: str
    chip: str
    latency_us: float
    roofline_us: float
    pe_utilisation: float
    dram_mb: float
    on_cpu: int
    compile_seconds: float
    l2_error: float
