"""Reports: numbers that agree with each other, as values, JSON, tables and timelines."""

import io
import json
from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from rich.console import Console

from tests.neff.samples import add_relu
from tvm_neuron.neff import Pipeline, Placement
from tvm_neuron.profile import EngineUse, Layer, Report, Subgraph, make_report
from tvm_neuron.profile.tables import render
from tvm_neuron.sim import time_program

CPU = Placement("nms", "NonMaxSuppression", "cpu", "the size of its result depends on the data")


def test_one_subgraph() -> None:
    neff = add_relu()
    report = make_report((*neff.placement, CPU), [Pipeline.of(neff)])
    timing = time_program(neff.program, neff.device)
    assert report.cycles == timing.cycles > 0
    assert report.latency_us == timing.latency_us
    assert report.dram_bytes == 3 * 4 * 8 * 4
    assert report.dram_bytes_by_kind == {"input": 128, "weight": 128, "output": 128}
    needed = 3 * 128 - 4  # one weight is zero
    assert report.roofline_us == pytest.approx(needed / neff.device.dram_bytes_per_second * 1e6, abs=1e-6)
    assert (report.weight_bytes, report.spill_bytes, report.sbuf_peak_bytes) == (128, 0, 16384)
    assert report.macs == report.pe_utilisation == 0
    assert [row.name for row in report.layers] == ["sum/add", "sum/relu"]
    assert sum(row.share for row in report.layers) == pytest.approx(1)
    assert sum(row.latency_us for row in report.layers) == pytest.approx(report.latency_us)
    assert sum(row.dram_bytes for row in report.layers) == report.dram_bytes
    assert [row.name for row in report.placed("cpu")] == ["nms"]
    assert {row.queue for row in report.engines} == {"act", "pool", "dma0", "dma1"}


def test_two_subgraphs_add_up() -> None:
    neff = add_relu()
    one = make_report((), [Pipeline.of(neff)])
    two = make_report((), [Pipeline.of(neff), Pipeline.of(replace(neff, name="second"))])
    for name in ("latency_us", "cycles", "roofline_us", "bound_us", "dram_bytes", "weight_bytes", "instructions"):
        assert getattr(two, name) == pytest.approx(2 * getattr(one, name))
    assert two.sbuf_peak_bytes == one.sbuf_peak_bytes
    assert [row.name for row in two.subgraphs] == ["add_relu", "second"]
    assert sum(row.share for row in two.layers) == pytest.approx(1)


def test_end_to_end_is_the_host_its_link_and_the_cores() -> None:
    neff = add_relu()
    parts = [Pipeline.of(neff), Pipeline.of(replace(neff, name="second"))]
    report = make_report((*neff.placement, CPU), parts)
    device, found = neff.device, report.end_to_end
    link_us = 4 * 128 / device.host_bytes_per_second * 1e6
    assert (found.request_us, found.calls_us) == (device.host_request_ns / 1e3, device.host_call_ns / 1e3)
    assert found.transfers_us == pytest.approx(link_us)
    assert (found.device_us, found.cpu_us) == (report.latency_us, None)
    assert report.end_to_end_us == pytest.approx(found.request_us + found.calls_us + link_us + report.latency_us)
    timed = make_report((*neff.placement, CPU), parts, cpu_us=70.0)
    assert timed.end_to_end_us == pytest.approx(report.end_to_end_us + 70)
    assert timed.latency_us == report.latency_us
    said, said_timed = (" ".join(text(each).split()) for each in (report, timed))
    assert "CPU parts not timed" in said
    assert "(request (fit) " in said
    assert report.to_dict()["end_to_end"]["fit"] == ("request_us", "calls_us")
    assert "CPU parts, timed on this machine 70.0" in said_timed


def test_nothing_on_the_neuroncore() -> None:
    report = make_report((CPU,), [], "neuron/inf2")
    assert (report.device, report.latency_us, report.pe_utilisation, report.layers) == ("neuron/inf2", 0, 0, ())
    text(report)


def test_to_json_holds_everything() -> None:
    report = make_report(add_relu().placement, [Pipeline.of(add_relu())])
    raw = json.loads(report.to_json())
    assert raw == json.loads(json.dumps(report.to_dict()))
    assert set(raw) == {field.name for field in fields(Report)} - {"parts"} | {"end_to_end_us"}
    assert raw["placement"][0] == {"name": "sum/add", "op": "Add", "where": "neuroncore", "reason": ""}
    assert raw["layers"][1]["op"] == "Relu"


def test_tables(golden: Callable[[str, str], None]) -> None:
    layers = tuple(
        Layer(f"conv{n}", "Conv", 100.0 / n, 100000 // n, 0.5 / n, {"pe": 80.0 / n, "dma": 12.5}, 1 << 20)
        for n in (2, 1, 3)
    )
    report = Report(
        device="inf1",
        precision={"fp32_cast": "all", "fp32_cast_of": {"layer3*": "none"}},
        placement=(
            Placement("conv1", "Conv", "neuroncore", ""),
            Placement("a [b]", "Shape", "compile time", "known"),
            CPU,
        ),
        latency_us=1234.5,
        interval_us=1234.5,
        cycles=1234500,
        roofline_us=1000.0,
        bound_us=1100.0,
        pe_utilisation=0.5,
        macs=1,
        dram_bytes=3 << 20,
        dram_bytes_by_kind={},
        weight_bytes=1,
        sbuf_peak_bytes=1,
        spill_bytes=0,
        instructions=1,
        engines=(EngineUse("pe", 1000.0, 0.81, {"act": 20.0, "dma0": 30.0}), EngineUse("dma0", 5.0, 0.01, {})),
        layers=layers,
        subgraphs=tuple(
            Subgraph(f"neuron_{n}", 617.25, 617250, 500.0, 550.0, 0.5, 1, 3 << 19, 1000, 1, 1, 0) for n in range(2)
        ),
    )
    golden("report.txt", text(report, top=2))


def text(report: Report, top: int = 10) -> str:
    out = io.StringIO()
    Console(file=out, width=120).print(render(report, top))
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())
