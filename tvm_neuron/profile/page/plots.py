"""The plots of the page, drawn by Bokeh: engines and memories over time on one axis, the roofline, traffic by cause."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJSHover, FactorRange, HoverTool, NumeralTickFormatter, Range1d
from bokeh.plotting import figure

from tvm_neuron.hw import Device
from tvm_neuron.isa.engines import BY_QUEUE, COMPUTE, QUEUES, of_dma
from tvm_neuron.profile.counters import count
from tvm_neuron.profile.page.facts import Cause, Operator
from tvm_neuron.profile.recording import Ints, Recording
from tvm_neuron.profile.run import CoreRun
from tvm_neuron.sim.timing import REASONS

# Okabe's and Ito's colours, which those tell apart who see red and green alike.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, GREY = "#CC79A7", "#56B4E9", "#999999"
_TOOLS = "xpan,xwheel_zoom,xbox_zoom,reset,save"
_OF_ENGINES = dict(zip(COMPUTE, (BLUE, GREEN, SKY, PURPLE, RED), strict=False))
_BUSY = _OF_ENGINES | {"dma": "#444444"}
_WAITS = _OF_ENGINES | {"dma": ORANGE, "own result": GREY}
_KINDS = {"weight": ORANGE, "input": PURPLE, "scratch": RED, "": BLUE}
_KIND_NAMES = {
    "weight": "loaded weights", "input": "loaded inputs", "scratch": "reloaded spills", "": "made on the core"
}  # fmt: skip
_US = 1e6


def _plot(title: str, **options: Any) -> Any:
    chosen: dict[str, Any] = {"tools": _TOOLS, "active_scroll": "xwheel_zoom", "sizing_mode": "stretch_width"}
    made = figure(title=title, **(chosen | {"output_backend": "canvas", "height": 260} | options))
    made.toolbar.logo = None
    return made


def _named(names: Sequence[str]) -> CustomJSHover:
    """Shows the text of a number, so that texts are in the page once."""
    return CustomJSHover(args={"names": list(names)}, code="return names[value]")


def engines(core: CoreRun, x_range: Range1d) -> Any:
    """What each queue did when, for which operator, and above it what it waited for before."""
    one = core.recording
    used = [queue for queue in QUEUES if queue in one.timing.busy_ps]
    made = _plot(
        "Engines and DMA queues: upper half at work, lower half waiting (colour: for whom)",
        x_range=x_range, y_range=FactorRange(*reversed(used)), height=80 + 44 * len(used), name=f"engines {core.core}",
    )  # fmt: skip
    place = {queue: len(used) - 1 - at for at, queue in enumerate(used)}
    y = np.array([place.get(queue, 0) + 0.5 for queue in QUEUES])[one.dynamic.queue]
    origins = one.neff.program.origins
    names = [f"{instruction.mnemonic} of {origins[instruction.origin]}" for instruction in one.dynamic.statics]
    left, right = one.clock.start / _US, one.clock.end / _US
    work = {"left": left, "right": right, "bottom": y, "top": y + 0.45, "what": one.dynamic.number.astype(np.int32)}
    for engine, color in _BUSY.items():
        mine = np.array([BY_QUEUE[queue].name == engine for queue in QUEUES])[one.dynamic.queue]
        if mine.any():
            _quads(made, work, mine, color, engine if engine != "dma" else "transfer")
    begin = _waits_begin(one)
    waited = {"left": begin / _US, "right": (begin + one.clock.waited) / _US, "what": work["what"]}
    waited |= {"bottom": y - 0.3, "top": y - 0.05}
    for reason, color in _WAITS.items():
        codes = [
            code
            for code, name in enumerate(REASONS)
            if reason in (name, BY_QUEUE[name].name if name in BY_QUEUE else "")
        ]
        mine = (one.clock.waited > 0) & np.isin(one.clock.why, codes)
        if mine.any():
            legend = f"waits for {'transfers' if reason == 'dma' else reason}"
            _quads(made, waited, mine, color, legend)
    tips = [("", "@what{custom}"), ("us", "@left{0.000} to @right{0.000}")]
    made.add_tools(HoverTool(tooltips=tips, formatters={"@what": _named(names)}))
    return _legend(made)


def _waits_begin(one: Recording) -> Ints:
    """When each instruction was the next of its queue and began to wait."""
    ready = (
        one.clock.start
        - one.clock.turn
        - np.where(
            np.array([of_dma(queue) for queue in QUEUES])[one.dynamic.queue],
            1000 * one.cost_of("latency_cycles"),  # the DMA's cycles are nanoseconds
            0,
        )
    )
    begin: Ints = ready - one.clock.waited
    return begin


def _quads(made: Any, columns: Mapping[str, Any], mine: Any, color: str, legend: str, alpha: float = 1.0) -> None:
    source = ColumnDataSource({name: values[mine] for name, values in columns.items()})
    made.quad(
        "left", "right", "top", "bottom", source=source, fill_color=color, fill_alpha=alpha, line_color=None,
        legend_label=legend,
    )  # fmt: skip


def _legend(made: Any) -> Any:
    made.xaxis.axis_label = "us"
    if made.legend:
        made.add_layout(made.legend[0], "right")
        made.legend.click_policy = "hide"
        made.legend.label_text_font_size = "9pt"
    return made


def memory(core: CoreRun, place: str, x_range: Range1d) -> Any:
    """Who lies where in SBUF or PSUM, from when to when; None if nobody does."""
    one = core.recording
    device, program = one.neff.device, one.neff.program
    total = device.sbuf_bytes_per_partition if place == "sbuf" else device.psum_bytes_per_partition
    lives = [life for life in one.lives.lives if life.place == place and life.end_ps > life.start_ps]
    if not lives:
        return None
    made = _plot(
        f"{place.upper()}: who lies where, of {total:,} bytes of each partition", x_range=x_range,
        y_range=Range1d(0, 1.02 * max(life.high for life in lives), bounds=(0, total)), height=300,
    )  # fmt: skip
    names: dict[str, int] = {}
    kinds, what = [], []
    for life in lives:
        tensor = program.tensors[life.loaded] if life.loaded >= 0 else None
        kinds.append(tensor.kind if tensor else "")
        origin = program.origins[life.writer.origin]
        told = f"{tensor.kind} {tensor.name} for {origin}" if tensor else f"result of {origin}"
        told += f", partitions {life.partition} to {life.partition + life.partitions - 1}"
        what.append(names.setdefault(told, len(names)))
    columns = {
        "left": np.array([life.start_ps for life in lives]) / _US,
        "right": np.array([life.end_ps for life in lives]) / _US,
        "bottom": np.array([life.low for life in lives]),
        "top": np.array([life.high for life in lives]),
        "what": np.array(what, np.int32),
    }
    for kind, color in _KINDS.items():
        mine = np.array([each == kind for each in kinds], np.bool_)
        if mine.any():
            _quads(made, columns, mine, color, _KIND_NAMES[kind], alpha=0.6)
    tips = [("", "@what{custom}"), ("us", "@left{0.00} to @right{0.00}"), ("bytes", "@bottom to @top")]
    made.add_tools(HoverTool(tooltips=tips, formatters={"@what": _named(list(names))}))
    made.yaxis.formatter = NumeralTickFormatter(format="0,0")
    return _legend(made)


def rates(core: CoreRun, x_range: Range1d) -> Any:
    """How much of the DRAM's bandwidth, the PE array and the memories is in use."""
    one = core.recording
    counters, device = count(one), one.neff.device
    seconds = np.diff(counters.edges_ps) / 1e12
    curves = {
        "DRAM bandwidth": (counters.dram_bytes / seconds / device.dram_bytes_per_second, ORANGE, "solid"),
        "PE array": (counters.macs / seconds / device.peak_macs_per_second, BLUE, "solid"),
        "SBUF": (counters.taken_bytes["sbuf"] / device.sbuf_bytes, GREEN, "dashed"),
        "PSUM": (counters.taken_bytes["psum"] / device.psum_bytes_per_partition / device.partitions, PURPLE, "dotted"),
    }
    made = _plot("In use, share of what there is", x_range=x_range, y_range=Range1d(0, 1.05), height=200)
    for name, (values, color, dash) in curves.items():
        made.step(
            counters.edges_ps / _US, [*values.tolist(), 0.0], mode="after", color=color, line_dash=dash, line_width=1.5,
            legend_label=name,
        )  # fmt: skip
    made.yaxis.formatter = NumeralTickFormatter(format="0%")
    return _legend(made)


def roofline(layers: Sequence[Operator], device: Device) -> Any:
    """Each operator with products as a point: operations for each byte over the DRAM, and operations a second."""
    shown = [row for row in layers if row.macs and row.us]
    peak, rate = 2 * device.peak_macs_per_second, device.dram_bytes_per_second
    x = [2 * row.macs / max(row.dram_bytes, 1) for row in shown]
    y = [2 * row.macs / row.us * 1e6 for row in shown]
    ridge = peak / rate
    most, least = max([10 * ridge, *x]), min([ridge / 100, *x])
    made = _plot(
        "Roofline: one point an operator, its area its share of the time", x_axis_type="log", y_axis_type="log",
        tools="pan,wheel_zoom,box_zoom,reset,save", active_scroll="wheel_zoom", height=360, name="roofline",
    )  # fmt: skip
    made.line([least, ridge, most], [least * rate, peak, peak], color="black", line_width=2, legend_label="bound")
    total = sum(row.us for row in layers) or 1.0
    for is_by_bytes, color, legend in ((True, ORANGE, "the DRAM bounds it"), (False, BLUE, "the PE array bounds it")):
        mine = [at for at, row in enumerate(shown) if (row.dram_us > row.array_us) is is_by_bytes]
        if mine:
            source = ColumnDataSource(
                {
                    "x": [x[at] for at in mine],
                    "y": [y[at] for at in mine],
                    "size": [6 + 40 * (shown[at].us / total) ** 0.5 for at in mine],
                    "name": [f"{shown[at].op} {shown[at].name}" for at in mine],
                    "us": [shown[at].us for at in mine],
                    "least": [shown[at].least_us for at in mine],
                }
            )
            made.scatter(
                "x", "y", size="size", source=source, color=color, fill_alpha=0.5, legend_label=legend,
                marker="square" if is_by_bytes else "circle",
            )  # fmt: skip
    tips = [("", "@name"), ("us", "@us{0.0}, least @least{0.0}"), ("operations a byte", "@x{0.0}")]
    made.add_tools(HoverTool(tooltips=tips))
    _legend(made)
    made.xaxis.axis_label, made.yaxis.axis_label = "operations for each byte over the DRAM", "operations a second"
    return made


def traffic(rows: Sequence[Cause]) -> Any:
    """Bytes over the DRAM by cause."""
    made = _plot(
        "DRAM traffic by cause, MB", y_range=FactorRange(*[row.name for row in reversed(rows)]), tools="save",
        active_scroll=None, height=60 + 34 * len(rows),
    )  # fmt: skip
    colors = [RED if "again" in row.name or "spill" in row.name or "back" in row.name else BLUE for row in rows]
    made.hbar([row.name for row in rows], 0.7, [row.bytes / 1e6 for row in rows], color=colors)
    made.x_range.start = 0
    return made
