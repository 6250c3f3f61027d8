"""timeline: every instruction of one run on a time axis, for chrome://tracing and Perfetto."""

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import load_instance
from tvm_neuron.neff import Pipeline
from tvm_neuron.profile.pipeline import way_of_an_input
from tvm_neuron.sim import Event, Track, chrome_trace, trace_program

MAX_EVENTS = 1_000_000


def timeline(pipeline: Pipeline) -> str:
    """The Trace Event Format as JSON text; an event carries its model operator's name.

    Of several cores, one input on its way through all: each begins when the one before is done and what it makes is
    there. Of cores that take inputs in turn, it has the last.

    Raises:
        ProgramError: the run has more than `MAX_EVENTS` instructions, which no viewer opens; or it deadlocks.
    """
    traces = [trace_program(core.program, core.device) for core in pipeline.cores]
    if (count := sum(map(len, traces))) > MAX_EVENTS:
        raise ProgramError(f"a timeline of {count:,} instructions is too large; at most {MAX_EVENTS:,} can be shown")
    if len(traces) == 1:
        return chrome_trace([Track(pipeline.name, 0, traces[0])])
    first = pipeline.cores[0]
    instance = load_instance(str(first.options.get("instance", "")), first.device)
    ends = [max((event.end_ps for event in trace), default=0) for trace in traces]
    begins, links = way_of_an_input(pipeline, ends, instance)
    tracks = [
        Track(f"core {core}", begin, trace)
        for core, begin, trace in zip(pipeline.last_cores, begins, traces, strict=True)
    ]
    between = [Event(f"from chip {chip}", begin, end, "link", f"link from chip {chip}") for chip, begin, end in links]
    return chrome_trace([*tracks, *([Track("links", 0, between)] if between else [])])
