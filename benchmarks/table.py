"""The table of all rows, on the terminal and in Markdown."""

import statistics
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.row import Row

CONSOLE = Console(width=None if Console().is_terminal else 150, record=True)
HEAD = ("what", "value>", "beside it", "ratio>", "of best>", "bar", "met", "spread>")
_SMALL = 10  # below, two digits


def cells(row: Row) -> tuple[str, ...]:
    """What the table says of a row."""
    peer = f"{_number(row.theirs)} {row.unit}, {row.peer}" if row.theirs is not None else ""
    is_single = len(row.samples) == len(row.peer_samples) == 1  # then the best is no other
    ratios = [f"{x:.2f}" if x is not None else "" for x in (row.ratio, None if is_single else row.best_ratio)]
    bar = row.bar.text(row.unit) if row.bar else ""
    met = {None: "", True: "yes", False: "NO"}[row.is_met]
    spread = "" if row.spread is None else f"{row.spread:.0%} of {len(row.earlier) + 1}"
    return row.what, f"{_number(row.ours)} {row.unit}", peer, *ratios, bar, met, spread


def show(rows: Sequence[Row], facts: Mapping[str, str] | None = None) -> None:
    """The table, with a section for each group."""
    table = make_table(heading(facts) if facts else "", *HEAD)
    for group, members in grouped(rows).items():
        table.add_section()
        if group:
            table.add_row(f"[bold]{group}")
        for row in members:
            table.add_row(*cells(row))
    CONSOLE.print(table)
    CONSOLE.print(summary(rows))


def markdown(rows: Sequence[Row], facts: Mapping[str, str]) -> str:
    """The same for a document."""
    rule = ["---:" if name.endswith(">") else "---" for name in HEAD]
    lines = [tuple(name.rstrip(">") for name in HEAD), tuple(rule)]
    for group, members in grouped(rows).items():
        lines += [(f"**{group}**", *[""] * (len(HEAD) - 1)), *map(cells, members)]
    return "\n".join([heading(facts), "", *(f"| {' | '.join(line)} |" for line in lines), "", summary(rows)])


def grouped(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by group, in the order of each group's first."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.group, []).append(row)
    return found


def heading(facts: Mapping[str, str]) -> str:
    """What it was measured on."""
    return "Measured on: " + ", ".join(f"{key} {value}" for key, value in facts.items())


def summary(rows: Sequence[Row]) -> str:
    """How many bars are met, and how far runs of the same code lie apart."""
    barred = [row for row in rows if row.bar]
    met = sum(bool(row.is_met) for row in barred)
    spreads = [row.spread for row in rows if row.spread is not None]
    text = f"{len(rows)} rows; {met} of {len(barred)} bars are met."
    if spreads:
        text += (
            f" Spread over runs of this commit: median {statistics.median(spreads):.1%}, largest {max(spreads):.0%}."
        )
    return text


def make_table(title: str, *columns: str) -> Table:
    """A table with these columns; those whose name ends in > have their numbers to the right."""
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name.rstrip(">"), justify="right" if name.endswith(">") else "left", overflow="fold")
    return table


def _number(value: float) -> str:
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) < _SMALL else f"{value:,.1f}"
