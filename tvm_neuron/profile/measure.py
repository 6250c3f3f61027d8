"""measure: what one NEFF costs, from its program and its device; data don't matter."""

from dataclasses import dataclass
from math import prod

from tvm_neuron.neff import Neff
from tvm_neuron.profile.attribution import wall_ps_by_origin
from tvm_neuron.profile.roofline import bound_us, roofline_us
from tvm_neuron.sim import Timing
from tvm_neuron.sim.timing import clocked

_PS_PER_US = 1e6


@dataclass(frozen=True, slots=True)
class Measurement:
    """`wall_us` and `dram_bytes` are by origin; the times in `wall_us` add up to the latency.

    `macs` are what the operators ask for, if the NEFF tells, and not what the program does to get them done.
    """

    timing: Timing
    macs: int
    roofline_us: float
    bound_us: float
    macs_at_peak_us: float
    wall_us: tuple[float, ...]
    dram_bytes: tuple[int, ...]

    @property
    def latency_us(self) -> float:
        """The whole run."""
        return self.timing.total_ps / _PS_PER_US

    @property
    def pe_utilisation(self) -> float:
        """The useful products over what the array could have done in that time."""
        return self.macs_at_peak_us / self.latency_us if self.latency_us else 0.0


def measure(neff: Neff) -> Measurement:
    """Times the program once.

    Raises:
        ProgramError: it deadlocks.
    """
    timing, dynamic, clock = clocked(neff.program, neff.device)
    dram_bytes = [0] * len(neff.program.origins)
    for counts, instruction in neff.program.instructions():
        dram_bytes[instruction.origin] += instruction.cost(neff.device).dram_bytes * prod(counts)
    macs = timing.macs if neff.macs is None else neff.macs
    return Measurement(
        timing=timing,
        macs=macs,
        roofline_us=roofline_us(neff, macs),
        bound_us=bound_us(neff),
        macs_at_peak_us=macs / neff.device.peak_macs_per_second * 1e6,
        wall_us=tuple(ps / _PS_PER_US for ps in wall_ps_by_origin(neff.program, dynamic, clock).tolist()),
        dram_bytes=tuple(dram_bytes),
    )
