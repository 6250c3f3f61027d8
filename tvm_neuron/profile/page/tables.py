"""HTML tables, of cells that are texts or numbers with how they are shown, and the page around them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Number:
    """`value` sorts, `shown` is read."""

    value: float
    shown: str


Cell = str | Number


def number(value: float, form: str = ",.1f") -> Number:
    """A number in a format of Python's."""
    return Number(value, format(value, form))


def document(title: str, body: str, head: str = "", end: str = "") -> str:
    """A whole page, which needs nothing else, with what makes its tables sort and filter."""
    style, script = ((files("tvm_neuron.profile.page") / name).read_text("utf-8") for name in ("page.css", "page.js"))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<link rel="icon" href="data:,"><style>{style}</style>{head}</head>'
        f"<body>{body}<script>{script}</script>{end}</body></html>\n"
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[Cell]], name: str = "") -> str:
    """A table; one with a name can be sorted and filtered. A heading that ends in ">" is of numbers."""
    listed = [list(row) for row in rows]
    heads = "".join(f"<th{_class(head.endswith('>'))}>{escape(head.removesuffix('>'))}</th>" for head in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in listed)
    if not name:
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return (
        f'<p><input class="filter" data-for="{name}" placeholder="filter: words that a row must have" '
        f'aria-label="filter"> <span id="{name}-shown">{len(listed)} of {len(listed)}</span></p>'
        f'<div class="scroll"><table class="sortable" id="{name}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _class(is_number: bool) -> str:
    return ' class="n"' if is_number else ""


def _cell(cell: Cell) -> str:
    if isinstance(cell, Number):
        return f'<td class="n" data-v="{cell.value!r}">{escape(cell.shown)}</td>'
    return f"<td>{escape(cell)}</td>"
