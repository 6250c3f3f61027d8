"""Timelines: both formats tell the same, which is what the clock found; read with the classes of Perfetto's package."""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.neff.samples import add_relu
from tests.onnx_models import mixed_model
from tvm_neuron import profile, relay, runtime
from tvm_neuron.errors import OptionError, ProgramError
from tvm_neuron.neff import Pipeline
from tvm_neuron.profile import Run, run_of, trace_file
from tvm_neuron.profile.recording import SEMAPHORE
from tvm_neuron.sim import time_program, trace_program


@pytest.fixture(scope="module")
def mixed() -> Run:
    """Two programs, and a CPU part between them."""
    mod, params = relay.frontend.from_onnx(mixed_model())
    return run_of(runtime.parts(relay.build(mod, target="neuron", params=params)))


def test_chrome_has_every_instruction_once() -> None:
    neff = add_relu()
    run = run_of([Pipeline.of(neff)], with_host=False)
    rows = json.loads(trace_file(run, "t.json"))["traceEvents"]
    work = [row for row in rows if row["ph"] == "X"]
    expected = trace_program(neff.program, neff.device)
    assert [(row["args"]["instruction"], row["args"]["operator"]) for row in work] == [
        (event.mnemonic, event.origin) for event in expected
    ]
    assert [row["ts"] * 1e6 for row in work] == pytest.approx([event.start_ps for event in expected])
    assert {row["name"] for row in work} >= {"sum/add: dma_copy", "sum/add: tensor_tensor", "sum/relu: activation"}
    pool = [row["args"] for row in work if row["args"]["instruction"] == "tensor_tensor"]
    assert [row["iteration"] for row in pool] == ["i0=0", "i0=1"]
    assert pool[0]["operand op"] == "add"
    assert pool[0]["operand left"].startswith("sbuf.float32{")
    assert (pool[0]["waited for"], pool[0]["bytes written"]) == ("dma1", 4 * 4 * 4)
    assert pool[0]["waited ns"] * 1000 == expected[1].end_ps
    assert work[0]["args"]["DRAM bytes"] == 128


def test_arrows_go_from_who_signals_to_who_waits_and_from_loads_to_their_first_use() -> None:
    (core,) = run_of([Pipeline.of(add_relu())]).cores
    arrows = {(arrow.kind, arrow.source, arrow.target) for arrow in core.recording.arrows()}
    # 0 and 1 load, 2 and 3 add, 4 is the activation, 5 stores
    expected = {("semaphore", 0, 2), ("semaphore", 1, 2), ("semaphore", 3, 4), ("semaphore", 4, 5)}
    assert arrows == expected | {("data", 0, 2), ("data", 1, 2)}


def test_counters_add_up(mixed: Run) -> None:
    for core, process in zip(mixed.cores, profile.timeline(mixed)[1:], strict=True):
        timing = time_program(core.recording.neff.program, core.recording.neff.device)
        sums = {}
        for counter in process.counters:
            seconds = np.diff(counter.times_ps) / 1e12
            sums[counter.name] = float(np.dot(seconds, counter.values[:-1]))
            assert counter.values[-1] == 0
        assert sums["DRAM"] * 1e9 == pytest.approx(timing.dram_bytes)
        peak = core.recording.neff.device.peak_macs_per_second
        assert sums["PE utilisation"] / 100 * peak == pytest.approx(timing.macs)
        device = core.recording.neff.device
        sbuf, psum = (max(c.values) for c in process.counters if c.name in ("SBUF", "PSUM"))
        assert 0 < sbuf <= device.sbuf_bytes
        assert psum <= device.psum_bytes_per_partition * device.partitions


def test_waits_are_the_signals(mixed: Run) -> None:
    """No slice that an arrow of a semaphore leads to begins before the signal; of each wait the last one tells when."""
    for core in mixed.cores:
        clock, dynamic = core.recording.clock, core.recording.dynamic
        for kind, source, target in core.recording.arrows():
            assert source < target
            ready = clock.start[target] - (clock.turn[target] if dynamic.queue[target] > 2 else 0)
            assert kind != SEMAPHORE or clock.done[source] <= ready


def test_perfetto_tells_what_chrome_tells(mixed: Run) -> None:
    pytest.importorskip("perfetto")  # in an environment older than the extra
    events = json.loads(trace_file(mixed, "t.json"))["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    chrome: dict[tuple[str, str], list] = defaultdict(list)
    arrows: dict[str, list] = defaultdict(list)
    counters: dict[tuple[str, str], list] = defaultdict(list)
    for e in events:
        if e["ph"] in "Xi":
            begin, end = round(e["ts"] * 1e6), round((e["ts"] + e.get("dur", 0)) * 1e6)
            row = names[e["pid"]], rows[e["pid"], e["tid"]]
            chrome[row].append((begin // 1000, end // 1000, e["name"], e["args"]))
        elif e["ph"] in "sf":
            arrows[e["id"]].append((names[e["pid"]], rows[e["pid"], e["tid"]], e["ph"]))
        elif e["ph"] == "C":
            counters[names[e["pid"]], e["name"]] += e["args"].values()
    assert next(iter(names.values())) == "host"
    assert len(names) == 3
    assert all([end[2] for end in ends] == ["s", "f"] for ends in arrows.values())
    slices, flows, values = read_perfetto(trace_file(mixed, "t.pftrace"))
    assert slices == chrome
    assert values == counters
    assert sorted(flows) == sorted((ends[0][:2], ends[1][:2]) for ends in arrows.values())


def read_perfetto(data: bytes) -> tuple[dict, list, dict]:
    """(begin, end, name, arguments) of the slices of each row of each process, in order; arrows; values of counters."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    slices: dict[tuple[str, str], list] = defaultdict(list)
    values: dict[tuple[str, str], list] = defaultdict(list)
    tracks: dict[int, tuple[str, str]] = {}
    processes: dict[int, str] = {}
    interned: dict[str, dict[int, Any]] = defaultdict(dict)
    leaving: dict[int, tuple[str, str]] = {}
    flows = []
    opened: dict[int, list] = defaultdict(list)
    for packet in Trace.FromString(data).packet:
        for table in ("event_names", "debug_annotation_names"):
            interned[table] |= {entry.iid: entry.name for entry in getattr(packet.interned_data, table)}
        texts = packet.interned_data.debug_annotation_string_values
        interned["texts"] |= {entry.iid: entry.str.decode() for entry in texts}
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.HasField("process"):
                processes[track.process.pid] = tracks[track.uuid] = track.process.process_name
            elif track.HasField("thread"):
                tracks[track.uuid] = (processes[track.thread.pid], track.thread.thread_name)
            else:
                tracks[track.uuid] = (tracks[track.parent_uuid], track.name)
                assert track.counter.unit_name
            continue
        event = packet.track_event
        row = tracks[event.track_uuid]
        if event.type == TrackEvent.TYPE_COUNTER:
            values[row].append(event.double_counter_value)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            begin, name, arguments = opened[event.track_uuid].pop()
            assert not opened[event.track_uuid]
            slices[row].append((begin, packet.timestamp, name, arguments))
        else:
            arguments = dict(annotations(event, interned))
            made = (packet.timestamp, interned["event_names"][event.name_iid], arguments)
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                opened[event.track_uuid].append(made)
            else:
                slices[row].append((made[0], *made))
            leaving |= dict.fromkeys(event.flow_ids, row)
            flows += [(leaving[flow], row) for flow in event.terminating_flow_ids]
    assert not any(opened.values())
    return slices, flows, values


def annotations(event: Any, interned: dict[str, dict[int, Any]]) -> Iterator[tuple[str, Any]]:
    for entry in event.debug_annotations:
        kind = entry.WhichOneof("value")
        value = getattr(entry, kind)
        yield interned["debug_annotation_names"][entry.name_iid], interned["texts"][value] if "iid" in kind else value


def test_a_timeline_too_large_to_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tvm_neuron.profile.run.MAX_EVENTS", 5)
    with pytest.raises(ProgramError, match="a timeline of 6 instructions is too large; at most 5 can be shown"):
        run_of([Pipeline.of(add_relu())])


def test_formats_that_there_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of([Pipeline.of(add_relu())])
    with pytest.raises(OptionError, match=r"the timeline 't.txt' must end in .json \(Chrome's format\) or .pftrace"):
        trace_file(run, "t.txt")
    monkeypatch.setitem(sys.modules, "perfetto", None)
    for name in [name for name in sys.modules if name.startswith(("perfetto.", "tvm_neuron.profile.perfetto"))]:
        monkeypatch.delitem(sys.modules, name)
    message = r"a timeline in .pftrace needs the package perfetto: pip install 'tvm-neuron\[timeline\]'"
    with pytest.raises(OptionError, match=message):
        trace_file(run, "t.pftrace")


def test_written_by_the_command(tmp_path: Path) -> None:
    pytest.importorskip("perfetto")
    from tvm_neuron import neff
    from tvm_neuron.cli.main import main

    neff.save(add_relu(), tmp_path / "r.neff")
    assert main(["report", str(tmp_path / "r.neff"), "--timeline", str(tmp_path / "t.pftrace")]) == 0
    slices, _, _ = read_perfetto((tmp_path / "t.pftrace").read_bytes())
    links = {("host", "link to the NeuronCore"), ("host", "link from the NeuronCore")}
    assert set(slices) == links | {("add_relu", queue) for queue in ("act", "pool", "dma0", "dma1")}
