"""page: a report as one HTML file that needs nothing else, also no network."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from bokeh.embed import components
from bokeh.models import Range1d
from bokeh.resources import Resources

from tvm_neuron.neff import Placement
from tvm_neuron.profile.attribution import wall_ps_by_origin
from tvm_neuron.profile.page import plots
from tvm_neuron.profile.page.facts import Moved, Operator, causes, moved, operators, spilled
from tvm_neuron.profile.page.findings import findings
from tvm_neuron.profile.page.graph import graph
from tvm_neuron.profile.page.overlay import Overlay
from tvm_neuron.profile.page.tables import Cell, document, number, table
from tvm_neuron.profile.run import CoreRun, CpuPart, Part, Run, run_of

_PS_PER_US = 1e6


def page(
    report: dict[str, Any], placement: Sequence[Placement], parts: Sequence[Part], title: str = "",
    overlay: Overlay | None = None,
) -> str:  # fmt: skip
    """The page of a report, as `Report.to_dict` gives it, of a library that runs `parts`.

    Raises:
        ProgramError: there are more instructions than can be shown.
    """
    run = run_of(parts)
    layers = [row for core in run.cores for row in _operators(core)]
    tensors = moved(run.cores)
    more = overlay or Overlay()
    drawn = dict(_plots(run, placement, layers, tensors))
    drawn |= {f"more{at}": one.plot for at, one in enumerate(more.sections) if one.plot is not None}
    script, divs = components(drawn) if drawn else ("", {})
    plot = {name: f'<div class="plot">{div}</div>' for name, div in divs.items()}
    resources = Resources(mode="inline", components=["bokeh"], log_level="warn")
    names = [core.name for core in run.cores]
    title = title or (names[0] if len(names) == 1 else "Compiled model")
    sections = [
        _summary(report, title),
        _section("What to look at first", _findings(report, run, tensors, layers)),
        *(_section(one.title, plot.get(f"more{at}", "") + one.body) for at, one in enumerate(more.sections)),
        _section("From end to end", _budget(run, parts) + plot.get("graph", "")),
        _section("Operators", plot.get("roofline", "") + _layers(layers, more)),
        *(_section(f"In time: {core.name}", _in_time(number, plot)) for number, core in enumerate(run.cores)),
        _section("DRAM traffic", plot.get("traffic", "") + _tensors(tensors) + _spilled(run.cores)),
        _section("Memory in total", _memory(run.cores)),
        _section("Where operators run", _placement(placement)),
    ]
    return document(title, "".join(sections), resources.render_js(), script)


def _operators(core: CoreRun) -> list[Operator]:
    one = core.recording
    wall = wall_ps_by_origin(one.neff.program, one.dynamic, one.clock) / _PS_PER_US
    return operators(core, wall.tolist())


def _plots(
    run: Run, placement: Sequence[Placement], layers: Sequence[Operator], tensors: Sequence[Moved]
) -> Iterator[tuple[str, Any]]:
    if not run.cores:
        return
    device = run.cores[0].recording.neff.device
    yield "graph", graph(run, placement)
    yield "roofline", plots.roofline(layers, device)
    yield "traffic", plots.traffic(causes(tensors, device.dram_bytes_per_second))
    for at, core in enumerate(run.cores):
        end = core.recording.clock.total / _PS_PER_US
        shared = Range1d(0, end, bounds=(0, end), name=f"time {at}")
        yield f"engines{at}", plots.engines(core, shared)
        yield f"rates{at}", plots.rates(core, shared)
        for place in ("sbuf", "psum"):
            if drawn := plots.memory(core, place, shared):
                yield f"{place}{at}", drawn


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _summary(report: dict[str, Any], title: str) -> str:
    latency = report["latency_us"]
    facts = [
        ("time on the NeuronCore", f"{latency:,.1f} us"),
        ("least that any program takes", f"{report['bound_us']:,.1f} us"),
        ("PE utilisation", f"{report['pe_utilisation']:.1%}"),
        ("DRAM traffic", f"{report['dram_bytes'] / 1e6:,.2f} MB"),
        ("most of SBUF", f"{report['sbuf_peak_bytes'] / 1e6:,.2f} MB"),
        ("instructions", f"{report['instructions']:,}"),
    ]
    if report["interval_us"] != latency:
        facts.insert(1, ("between inputs", f"{report['interval_us']:,.1f} us"))
    boxes = "".join(f"<div>{escape(name)}<b>{escape(value)}</b></div>" for name, value in facts)
    precision = ", ".join(f"{name} = {value}" for name, value in report["precision"].items())
    about = f"on {report['device']}" + (f"; {precision}" if precision else "")
    return (
        f'<h1>{escape(title)}</h1><div class="note">{escape(about)}. All numbers are of the hardware model.</div>'
        f'<div class="numbers">{boxes}</div>'
    )


def _findings(report: dict[str, Any], run: Run, tensors: Sequence[Moved], layers: Sequence[Operator]) -> str:
    rows = findings(report, run.cores, tensors, layers)
    if not rows:
        return "<p>Nothing runs on the NeuronCore.</p>"
    items = "".join(f"<li><b>up to {row.gain_us:,.1f} us</b>: {escape(row.text)}</li>" for row in rows)
    return f'<ol class="findings">{items}</ol>'


def _budget(run: Run, parts: Sequence[Part]) -> str:
    """One line for each step of a run, in turn."""
    rows: list[tuple[float, list[Cell]]] = []
    for one in (*run.host, *run.links):
        us = (one.end_ps - one.begin_ps) / _PS_PER_US
        is_timed = one.end_ps > one.begin_ps
        rows.append((one.begin_ps, [one.row, one.name, number(us) if is_timed else "not modelled"]))
    for core in run.cores:
        rows.append((core.begin_ps, [f"core {core.core}", core.name, number(core.recording.clock.total / _PS_PER_US)]))
    rows.sort(key=lambda row: row[0])
    note = "" if any(isinstance(part, CpuPart) for part in parts) else "<p class='note'>Nothing runs on the CPU.</p>"
    return table(["where", "what", "us>"], [row for _, row in rows]) + note


def _layers(layers: Sequence[Operator], more: Overlay) -> str:
    total = sum(row.us for row in layers) or 1.0
    note = (
        "The time of the whole is given to one operator at each instant. Least: multiplications at the array's peak, "
        "or its bytes over the DRAM, the longer one; it can take less, and lie above the line, if its bytes came while "
        "others ran. An operator that was fused into another's instructions has no row."
    )
    rows: list[list[Cell]] = [
        [
            row.name,
            row.op,
            number(row.us),
            number(100 * row.us / total),
            number(row.least_us),
            "DRAM" if row.dram_us > row.array_us else "PE array" if row.macs else "engines",
            number(row.macs / 1e6),
            number(row.dram_bytes / 1e6, ",.3f"),
            number(100 * row.array_us / row.us if row.us else 0.0),
            *(cells.get(row.name, "") for cells in more.columns.values()),
        ]
        for row in sorted(layers, key=lambda row: -row.us)
    ]
    heads = ["operator", "type", "us>", "% of time>", "least us>", "bound", "M multiplications>", "DRAM MB>", "PE %>"]
    heads += more.columns
    return f'<p class="note">{escape(note)}</p>' + table(heads, rows, "layers")


def _in_time(at: int, plot: dict[str, str]) -> str:
    """The plots of one core, which share their axis."""
    note = "Wheel: zoom in time, in all plots. Drag: move. A name beside a plot hides what it names."
    drawn = "".join(plot.get(f"{name}{at}", "") for name in ("engines", "rates", "sbuf", "psum"))
    return f'<p class="note">{escape(note)}</p>{drawn}'


def _tensors(tensors: Sequence[Moved]) -> str:
    rows: list[list[Cell]] = [
        [
            row.name,
            row.kind,
            row.program,
            number(row.size / 1e6, ",.3f"),
            number(row.read / 1e6, ",.3f"),
            number(row.written / 1e6, ",.3f"),
            number(row.times, ".2f"),
            ", ".join(row.readers[:3]) + (" ..." if len(row.readers) > 3 else ""),
        ]
        for row in tensors
    ]
    heads = ["tensor", "kind", "program", "MB>", "MB read>", "MB written>", "times loaded>", "read by"]
    return table(heads, rows, "tensors")


def _spilled(cores: Sequence[CoreRun]) -> str:
    """What waits in DRAM, and why."""
    rows: list[list[Cell]] = [
        [
            row.name,
            row.program,
            number(row.bytes / 1e6, ",.3f"),
            number(row.begin_us),
            number(row.end_us),
            number(100 * row.sbuf_share, ".0f"),
        ]
        for core in cores
        for row in spilled(core)
    ]
    if not rows:
        return '<p class="note">Nothing is spilled.</p>'
    heads = ["spilled", "program", "MB>", "from us>", "to us>", "most of SBUF in use meanwhile, %>"]
    note = "A tensor waits in DRAM where SBUF has no room for it, or on its way from some partitions to others."
    return f'<h3>Spilled</h3><p class="note">{escape(note)}</p>' + table(heads, rows, "spilled")


def _memory(cores: Sequence[CoreRun]) -> str:
    names = list(dict.fromkeys(name for core in cores for name in core.recording.neff.memory))
    rows: list[list[Cell]] = []
    for core in cores:
        neff = core.recording.neff
        sizes = {"input": 0, "output": 0}
        for tensor in neff.program.tensors:
            if tensor.kind in sizes:
                sizes[tensor.kind] += tensor.size_bytes
        values = [*(neff.memory.get(name, 0) for name in names), *sizes.values()]
        rows.append([core.name, *(number(value / 1e6, ",.3f") for value in values)])
    return table(["program", *(f"{name} MB>" for name in (*names, "inputs", "outputs"))], rows)


def _placement(placement: Sequence[Placement]) -> str:
    rows = [[row.name, row.op, row.where, row.reason] for row in placement]
    return table(["operator", "type", "runs", "why not on the NeuronCore"], rows, "placement")
