"""trace_file: a run as a file for a viewer of timelines, in the format that its name asks for."""

from collections.abc import Callable, Sequence
from pathlib import PurePath

from tvm_neuron.errors import OptionError, from_extra
from tvm_neuron.profile.chrome import chrome_trace
from tvm_neuron.profile.run import Run
from tvm_neuron.profile.timeline import Process, timeline


def trace_writer(name: str) -> Callable[[Sequence[Process]], bytes]:
    """What makes a file of that name: JSON, which chrome://tracing and Perfetto open, or Perfetto's own format.

    Raises:
        OptionError: its ending is that of neither, or the extra that its format needs is not installed.
    """
    match PurePath(name).suffix:
        case ".json":
            return chrome_trace
        case ".pftrace":
            with from_extra("timeline", "a timeline in .pftrace"):
                from tvm_neuron.profile.perfetto import perfetto_trace
            return perfetto_trace
    raise OptionError(f"the timeline '{name}' must end in .json (Chrome's format) or .pftrace (Perfetto's own)")


def trace_file(run: Run, name: str) -> bytes:
    """The contents of a file of that name.

    Raises:
        OptionError: see `trace_writer`.
    """
    return trace_writer(name)(timeline(run))
