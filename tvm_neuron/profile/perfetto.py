"""perfetto_trace: a timeline in Perfetto's own format, by its package `perfetto`; names and texts are written once."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

from tvm_neuron.profile.run import Argument
from tvm_neuron.profile.timeline import Counter, Process

_PS_PER_NS = 1000
_SEQUENCE = 1


def perfetto_trace(processes: Sequence[Process]) -> bytes:
    """The file; times are nanoseconds, rounded down."""
    writer = _Writer()
    for number, process in enumerate(processes):
        writer.process(number + 1, process)  # to viewers, process 0 is the system's
    data: bytes = writer.trace.SerializeToString()
    return data


class _Writer:
    """Adds packets; what they share is told in the packet that first needs it."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.ids = count(1)  # of tracks and flows
        self.known: dict[str, dict[str, int]] = {"event_names": {}, "debug_annotation_names": {}, "texts": {}}

    def packet(self) -> Any:
        """One more packet, which may refer to what those before it told."""
        made = self.trace.packet.add()
        made.trusted_packet_sequence_id = _SEQUENCE
        is_first = len(self.trace.packet) == 1
        made.sequence_flags = TracePacket.SEQ_NEEDS_INCREMENTAL_STATE | (
            TracePacket.SEQ_INCREMENTAL_STATE_CLEARED if is_first else 0
        )
        return made

    def process(self, pid: int, process: Process) -> None:
        """Its tracks, slices with arrows, and counters."""
        whole = self.track()
        whole.process.pid, whole.process.process_name = pid, process.name
        tracks = {}
        for tid, row in enumerate(process.rows, 1):
            track = self.track()
            track.thread.pid, track.thread.tid, track.thread.thread_name = pid, 1000 * pid + tid, row
            track.parent_uuid, track.sibling_order_rank = whole.uuid, tid
            tracks[row] = track.uuid
        leaving: dict[int, list[int]] = {}
        arriving: dict[int, list[int]] = {}
        for _, source, target in process.arrows:
            flow = next(self.ids)
            leaving.setdefault(source, []).append(flow)
            arriving.setdefault(target, []).append(flow)
        for number, one in enumerate(process.slices):
            is_instant = one.begin_ps == one.end_ps
            packet = self.packet()
            packet.timestamp = one.begin_ps // _PS_PER_NS
            event = packet.track_event
            event.track_uuid = tracks[one.row]
            event.type = TrackEvent.TYPE_INSTANT if is_instant else TrackEvent.TYPE_SLICE_BEGIN
            event.name_iid = self.intern(packet, "event_names", one.name)
            for name, value in one.arguments.items():
                self.annotate(packet, name, value)
            event.flow_ids.extend(leaving.get(number, ()))
            event.terminating_flow_ids.extend(arriving.get(number, ()))
            if not is_instant:
                end = self.packet()
                end.timestamp = one.end_ps // _PS_PER_NS
                end.track_event.track_uuid, end.track_event.type = event.track_uuid, TrackEvent.TYPE_SLICE_END
        for counter in process.counters:
            self.counter(counter, whole.uuid)

    def track(self) -> Any:
        """The description of one more track."""
        made = self.packet().track_descriptor
        made.uuid = next(self.ids)
        return made

    def counter(self, counter: Counter, parent: int) -> None:
        """A track of values below a process."""
        track = self.track()
        track.name, track.parent_uuid = counter.name, parent
        track.counter.unit_name = counter.unit
        for at, value in zip(counter.times_ps, counter.values, strict=True):
            packet = self.packet()
            packet.timestamp = at // _PS_PER_NS
            event = packet.track_event
            event.type, event.track_uuid, event.double_counter_value = TrackEvent.TYPE_COUNTER, track.uuid, value

    def annotate(self, packet: Any, name: str, value: Argument) -> None:
        """One argument of a slice."""
        made = packet.track_event.debug_annotations.add()
        made.name_iid = self.intern(packet, "debug_annotation_names", name)
        if isinstance(value, str):
            made.string_value_iid = self.intern(packet, "texts", value)
        elif isinstance(value, int):
            made.int_value = value
        else:
            made.double_value = value

    def intern(self, packet: Any, table: str, text: str) -> int:
        """The number of a text, which `packet` tells if none did before."""
        known = self.known[table]
        if text not in known:
            known[text] = len(known) + 1
            if table == "texts":
                packet.interned_data.debug_annotation_string_values.add(iid=known[text], str=text.encode())
            else:
                getattr(packet.interned_data, table).add(iid=known[text], name=text)
        return known[text]
