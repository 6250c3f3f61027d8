"""timeline: every instruction of one run on a time axis, for chrome://tracing and Perfetto."""

from tvm_neuron.errors import ProgramError
from tvm_neuron.neff import Neff
from tvm_neuron.sim import chrome_trace, trace_program

MAX_EVENTS = 1_000_000


def timeline(neff: Neff) -> str:
    """The Trace Event Format as JSON text; an event carries its model operator's name.

    Raises:
        ProgramError: the run has more than `MAX_EVENTS` instructions, which no viewer opens; or it deadlocks.
    """
    events = trace_program(neff.program, neff.device)
    if len(events) > MAX_EVENTS:
        raise ProgramError(
            f"a timeline of {len(events):,} instructions is too large; at most {MAX_EVENTS:,} can be shown"
        )
    return chrome_trace(events)
