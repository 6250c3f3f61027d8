"""compare: what differs between two reports of a model, as rows: numbers, placement, operators, engines, traffic."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from tvm_neuron.profile.page.tables import Number, document, table
from tvm_neuron.profile.report import Report

Value = int | float | str | None
_NUMBERS = (
    "latency_us", "interval_us", "cycles", "roofline_us", "bound_us", "pe_utilisation", "macs", "macs_moved",
    "dram_bytes", "weight_bytes", "sbuf_peak_bytes", "spill_bytes", "instructions",
)  # fmt: skip
TITLES = {
    "model": "What was asked for",
    "numbers": "Numbers",
    "memory": "Memory by program, bytes",
    "traffic": "DRAM traffic by kind, bytes",
    "placement": "Where operators run",
    "layers": "Operators, us",
    "layer traffic": "Operators, bytes over the DRAM",
    "engines": "Engines and queues, us at work",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differs; None on a side that doesn't have it."""

    group: str  # of `TITLES`
    name: str
    before: Value
    after: Value

    @property
    def ratio(self) -> float | None:
        """After over before, of numbers."""
        is_known = isinstance(self.before, int | float) and isinstance(self.after, int | float) and self.before
        return float(self.after) / float(self.before) if is_known else None  # type: ignore[arg-type]


@dataclass(frozen=True)
class Difference:
    """`changes` in the order of `TITLES`, of numbers the largest first; none if all that matters is the same."""

    names: tuple[str, str]
    changes: tuple[Change, ...]

    def of(self, group: str) -> tuple[Change, ...]:
        """The changes of one kind."""
        return tuple(change for change in self.changes if change.group == group)

    def to_dict(self) -> dict[str, Any]:
        """As dictionaries and lists."""
        rows = [asdict(change) | {"ratio": change.ratio} for change in self.changes]
        return {"before": self.names[0], "after": self.names[1], "differs": bool(rows), "changes": rows}

    def to_json(self) -> str:
        """As text in JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def to_html(self) -> str:
        """As a page whose tables sort and filter."""
        title = f"{self.names[0]} and {self.names[1]}"
        parts = [f"<h1>{escape(title)}</h1>"]
        for number, (group, heading) in enumerate(TITLES.items()):
            if rows := self.of(group):
                cells = [[row.name, _cell(row.before), _cell(row.after), _ratio(row)] for row in rows]
                columns = ["", f"{self.names[0]}>", f"{self.names[1]}>", "after / before>"]
                parts.append(f"<h2>{escape(heading)}</h2>{table(columns, cells, f'table{number}')}")
        return document(title, "".join(parts) if self.changes else f"{parts[0]}<p>Nothing that matters differs.</p>")


def compare(before: Report, after: Report, names: tuple[str, str], tolerance: float = 0.0) -> Difference:
    """What differs; numbers do by more than the share `tolerance` of the larger one."""
    found: list[Change] = []
    for group, one, other in zip(TITLES, _values(before), _values(after), strict=True):
        changes = [
            Change(group, name, one.get(name), other.get(name))
            for name in dict.fromkeys([*one, *other])
            if not _same(one.get(name), other.get(name), tolerance)
        ]
        found += sorted(changes, key=_rank)
    return Difference(names, tuple(found))


def _values(report: Report) -> Iterator[Mapping[str, Value]]:
    """The values of each group, by name."""
    precision = {name: json.dumps(value) for name, value in report.precision.items()}
    cores = {f"{use.name}: cores": use.cores for use in report.pipelines}
    kernels = {f"{use.subgraph}: kernel by hand": use.kernel for use in report.kernels}
    mesh: dict[str, Value] = {"cores": report.spmd.cores, "instance": report.spmd.instance} if report.spmd else {}
    exchanges = report.spmd.exchanges if report.spmd else ()
    yield dict[str, Value](device=report.device) | precision | cores | mesh | kernels | _shapes(report)
    shared: dict[str, Value] = {"shared_us": report.spmd.shared_us} if report.spmd else {}
    yield {name: getattr(report, name) for name in _NUMBERS} | shared
    yield {
        f"{part.name}: {name}": getattr(part, name)
        for part in report.subgraphs
        for name in ("weight_bytes", "sbuf_peak_bytes", "spill_bytes")
    }
    yield dict(report.dram_bytes_by_kind)
    yield _numbered((f"{row.op} {row.name}", row.where) for row in report.placement)
    exchanged = [(f"{row.operation} {row.name}", row.latency_us) for row in exchanges]
    yield _numbered([*((f"{row.op} {row.name}", row.latency_us) for row in report.layers), *exchanged])
    yield _numbered((f"{row.op} {row.name}", row.dram_bytes) for row in report.layers)
    yield {row.queue: row.busy_us for row in report.engines}


def _shapes(report: Report) -> dict[str, Value]:
    """What goes in and comes out of programs."""
    return {f"{row.subgraph} {row.direction}: {row.tensor}": row.bytes for row in report.transfers}


def _numbered(rows: Any) -> dict[str, Value]:
    """By name; of several with one name, the second has a (2) behind it."""
    found: dict[str, Value] = {}
    for name, value in rows:
        at, chosen = 1, name
        while chosen in found:
            at, chosen = at + 1, f"{name} ({at + 1})"
        found[chosen] = value
    return found


def _same(one: Value, other: Value, tolerance: float) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= tolerance * max(abs(one), abs(other))
    return one == other


def _rank(change: Change) -> float:
    """Texts and what only one side has first, then the largest change of a number."""
    if change.ratio is None:
        return -float("inf")
    return -abs(float(change.after or 0) - float(change.before or 0))


def shown(value: Value) -> str:
    """A value as a reader sees it."""
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, int):
        return f"{value:,}"
    return value or ""


def _cell(value: Value) -> Number | str:
    return Number(float(value), shown(value)) if isinstance(value, int | float) else shown(value)


def _ratio(change: Change) -> Number | str:
    return Number(change.ratio, f"{change.ratio:.3f}") if change.ratio is not None else ""
