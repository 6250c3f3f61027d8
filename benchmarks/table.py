"""The tables that the benchmarks print."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.modelled import Modelled
from benchmarks.row import Row

CONSOLE = Console(width=None if Console().is_terminal else 132, record=True)


def show(rows: Iterable[Row], machine: Mapping[str, str] | None = None) -> None:
    """Measured times, each beside what it is compared with."""
    title = "Measured on: " + ", ".join(f"{key} {value}" for key, value in (machine or {}).items())
    columns = ("what", "median>", "best>", "beside it, median>", "best>", "of", "ratio>", "of best>", "bar>")
    table = make_table(title if machine else "Measured", *columns)
    table.columns[0].no_wrap = True
    for row in rows:
        ratios = [f"{ratio:.2f}" if ratio is not None else "" for ratio in (row.ratio, row.best_ratio)]
        table.add_row(
            row.what, *_summary(row, row.samples), *_summary(row, row.peer_samples), row.peer, *ratios, _bar(row)
        )
    CONSOLE.print(table)


def show_modelled(rows: Iterable[Modelled]) -> Sequence[Modelled]:
    """What the model says of each network and chip; the rows again, for further use."""
    columns = (
        "network",
        "chip",
        "latency us>",
        "roofline us>",
        "PE>",
        "DRAM MB>",
        "on CPU>",
        "compiled s>",
        "L2 error>",
    )
    table = make_table("Modelled, batch 1", *columns)
    shown = []
    for row in rows:
        shown.append(row)
        table.add_row(
            row.network, row.chip, f"{row.latency_us:,.0f}", f"{row.roofline_us:,.0f}", f"{row.pe_utilisation:.1%}",
            f"{row.dram_mb:,.1f}", str(row.on_cpu), f"{row.compile_seconds:.1f}", f"{row.l2_error:.2%}",
        )  # fmt: skip
    CONSOLE.print(table)
    return shown


def make_table(title: str, *columns: str) -> Table:
    """A table with these columns; those whose name ends in > have their numbers to the right."""
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name.rstrip(">"), justify="right" if name.endswith(">") else "left", overflow="fold")
    return table


def _summary(row: Row, samples: Sequence[float]) -> tuple[str, str]:
    """Median, and the best if there is more than one."""
    if not samples:
        return "", ""
    best = f"{min(samples):,.1f} {row.unit}" if len(samples) > 1 else ""
    return f"{statistics.median(samples):,.1f} {row.unit}", best


def _bar(row: Row) -> str:
    if row.bar is None:
        return ""
    unit = "x" if row.is_bar_a_ratio else f" {row.unit}"
    return f"< {row.bar:g}{unit}: {'met' if row.is_met else 'missed'}"
