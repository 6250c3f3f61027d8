"""render: a report as tables for a terminal."""

from collections import Counter

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tvm_neuron.isa.engines import IN_REPORTS, of_dma
from tvm_neuron.profile.pipeline import PipelineUse
from tvm_neuron.profile.report import Report
from tvm_neuron.profile.spmd import SpmdUse
from tvm_neuron.profile.transfers import FROM_CORE, TO_CORE


def render(report: Report, top: int = 10) -> RenderableType:
    """The headline, where operators run and why, the `top` slowest layers, and the engines."""
    parts: list[RenderableType] = [Text(report.headline())]
    if report.end_to_end.device_us:
        parts.append(Text(_end_to_end(report)))
    if report.precision:
        parts.append(Text(f"precision: {', '.join(f'{name} = {value}' for name, value in report.precision.items())}"))
    parts.append(_placement(report))
    if report.placed("cpu"):
        parts.append(_cpu(report))
    if report.layers:
        parts += [_layers(report, top), _engines(report)]
    if report.transfers:
        parts.append(_transfers(report))
    if report.kernels:
        parts.append(_kernels(report))
    if report.spmd:
        parts.append(_spmd(report.spmd))
    parts += [_pipeline(pipeline) for pipeline in report.pipelines]
    if len(report.subgraphs) > 1:
        parts.append(_subgraphs(report))
    return Group(*parts)


def _end_to_end(report: Report) -> str:
    found = report.end_to_end
    shares = {
        "request (fit)": found.request_us, "further calls (fit)": found.calls_us, "transfers": found.transfers_us,
        "cores": found.device_us, "CPU parts, timed on this machine": found.cpu_us or 0.0,
    }  # fmt: skip
    shown = ", ".join(f"{name} {us:,.1f}" for name, us in shares.items() if us)
    untimed = "; CPU parts not timed" if found.cpu_us is None and report.placed("cpu") else ""
    return f"end to end, with the host: {found.total_us:,.1f} us ({shown}{untimed})"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name.rstrip(">"), justify="right" if name.endswith(">") else "left", overflow="fold")
    return table


def _placement(report: Report) -> Table:
    table = _table("Placement of the model's operators", "runs", "operators>", "types")
    for where in dict.fromkeys(row.where for row in report.placement):
        types = Counter(row.op for row in report.placed(where))
        table.add_row(where, str(types.total()), ", ".join(f"{count} {op}" for op, count in types.most_common()))
    return table


def _cpu(report: Report) -> Table:
    table = _table("On the CPU", "operator", "type", "reason")
    for row in report.placed("cpu"):
        table.add_row(Text(row.name), Text(row.op), Text(row.reason))
    return table


def _layers(report: Report, top: int) -> Table:
    shown = f"{min(top, len(report.layers))} of {len(report.layers)} layers"
    title = f"Where the time went: {shown} (us of the whole, us that each engine was busy, MB of DRAM traffic)"
    engines = [name for name in IN_REPORTS if any(name in layer.busy_us for layer in report.layers)]
    table = _table(title, "layer", "type", "us>", "share>", *(f"{name.upper()}>" for name in engines), "MB>")
    ranked = sorted(report.layers, key=lambda layer: -layer.latency_us)
    for layer in ranked[:top]:
        busy = [f"{layer.busy_us.get(engine, 0):,.1f}" for engine in engines]
        numbers = (f"{layer.latency_us:,.1f}", f"{layer.share:.1%}", *busy, f"{layer.dram_bytes / 1e6:.2f}")
        table.add_row(Text(layer.name), Text(layer.op), *numbers)
    rest = ranked[top:]
    if rest:
        us, share = sum(layer.latency_us for layer in rest), sum(layer.share for layer in rest)
        table.add_row(f"{len(rest)} others", "", f"{us:,.1f}", f"{share:.1%}")
    return table


def _engines(report: Report) -> Table:
    table = _table("Engines", "queue", "busy us>", "of the time>", "stood still for")
    for row in report.engines:
        has_many = of_dma(row.queue)  # its transfers wait side by side, so their waits add up to no time
        stalls = [] if has_many else sorted(row.stalls_us.items(), key=lambda item: -item[1])[:3]
        waits = ", ".join(f"{other} {us:,.1f} us" for other, us in stalls)
        table.add_row(row.queue, f"{row.busy_us:,.1f}", f"{row.share:.1%}", waits)
    return table


def _transfers(report: Report) -> Table:
    title = "Between the host and the NeuronCores, at each run (us: of the host's link, not part of the latency)"
    table = _table(title, "subgraph", "direction", "tensors>", "MB>", "us>", "which")
    for name in dict.fromkeys(row.subgraph for row in report.transfers):
        for direction in (TO_CORE, FROM_CORE):
            rows = [row for row in report.transfers if (row.subgraph, row.direction) == (name, direction)]
            which = ", ".join(row.tensor for row in rows[:3]) + (f" and {len(rows) - 3} more" if len(rows) > 3 else "")
            numbers = (f"{sum(row.bytes for row in rows) / 1e6:.2f}", f"{sum(row.link_us for row in rows):,.1f}")
            table.add_row(Text(name), direction, str(len(rows)), *numbers, Text(which))
    return table


def _kernels(report: Report) -> Table:
    table = _table(
        "Kernels written by hand, and what the compiler would have there", "kernel", "in", "us>", "compiled us>"
    )
    for row in report.kernels:
        compiled = "" if row.compiled_us is None else f"{row.compiled_us:,.1f}"
        table.add_row(Text(row.kernel), Text(row.subgraph), f"{row.latency_us:,.1f}", compiled)
    return table


def _spmd(use: SpmdUse) -> Table:
    title = (
        f"Exchanges of {use.cores} cores of {use.instance}: {use.exchange_us:,.1f} us of the latency; cores that share "
        f"a chip's DRAM take {use.shared_us:,.1f} us longer"
    )
    table = _table(title, "operator", "exchange", "cores>", "MB sent by a core>", "us>")
    for row in use.exchanges:
        numbers = (str(row.cores), f"{row.bytes / 1e6:.3f}", f"{row.latency_us:,.1f}")
        table.add_row(Text(row.name), row.operation, *numbers)
    return table


def _pipeline(use: PipelineUse) -> Table:
    partly = f"partly cached (about {use.cores_for_all_weights} cores would hold all)"
    title = (
        f"Pipeline {use.name} on {use.instance}: {use.inputs_per_second:,.0f} inputs a second, one every "
        f"{use.interval_us:,.1f} us (limit: {use.limit}); latency {use.latency_us:,.1f} us, {use.link_us:,.1f} of them "
        f"on links; loaded in {use.load_us:,.1f} us; weights {'cached' if use.is_cached else partly}"
    )
    columns = ("core>", "chip>", "us>", "at work>", "weights kept MB>", "streamed MB>", "sent MB>", "from", "to")
    table = _table(title, *columns)
    for row in use.stages:
        sizes = (f"{size / 1e6:.2f}" for size in (row.kept_bytes, row.streamed_bytes, row.sent_bytes))
        cores = str(row.core) if row.replicas == 1 else f"{row.core}-{row.core + row.replicas - 1}"
        numbers = (cores, str(row.chip), f"{row.latency_us:,.1f}", f"{row.share:.0%}", *sizes)
        table.add_row(*numbers, Text(row.first), Text(row.last))
    return table


def _subgraphs(report: Report) -> Table:
    table = _table("Neuron subgraphs", "name", "us>", "roofline us>", "bound us>", "PE>", "DRAM MB>", "instructions>")
    for row in report.subgraphs:
        times = (f"{us:,.1f}" for us in (row.latency_us, row.roofline_us, row.bound_us))
        utilisation = f"{row.pe_utilisation:.1%}"
        table.add_row(Text(row.name), *times, utilisation, f"{row.dram_bytes / 1e6:.2f}", f"{row.instructions:,}")
    return table
