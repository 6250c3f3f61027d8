"""overlay: a comparison as a section and columns of the page of the report."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from bokeh.models import ColumnDataSource, HoverTool
from bokeh.plotting import figure

from tvm_neuron.numerics.measure import Apart, percent
from tvm_neuron.numerics.rows import Finding, OperatorError, WhatIf
from tvm_neuron.profile.page.overlay import Overlay, Section
from tvm_neuron.profile.page.plots import BLUE, ORANGE, RED, SKY
from tvm_neuron.profile.page.tables import Cell, number, table

_LEAST = 1e-9  # shown for no error, since the axis is logarithmic
_CURVES = (
    ("alone, on the core", "alone", BLUE, "circle"),
    ("alone, its roundings", "alone_explained", SKY, "cross"),
    ("up to here, on the core", "grown", RED, "square"),
    ("up to here, roundings", "grown_explained", ORANGE, "line"),
)


def overlay(
    inputs: str, findings: Sequence[Finding], operators: Sequence[OperatorError], what_if: Sequence[WhatIf]
) -> Overlay:
    """The section "Where numbers depart from float32", and the errors beside each operator's time."""
    columns: dict[str, dict[str, Cell]] = {
        "error entering %>": {row.name: _cell(row.alone) for row in operators},
        "error up to here %>": {row.name: _cell(row.grown or row.grown_explained) for row in operators},
    }
    note = (
        f"Inputs: {inputs}. Errors are relative L2 against onnxruntime. Alone: each operator on exact inputs. Up "
        "to here: the program compiled up to an operator, where it was tried; roundings are the core's, done in NumPy."
    )
    items = "".join(f"<li>{escape(one.text)}</li>" for one in findings)
    body = f'<ol class="findings">{items}</ol><p class="note">{escape(note)}</p>'
    body += table(
        ["operator", "type", "runs", "rounds", *(f"{name} %>" for name, *_ in _CURVES), "explained"],
        [_row(row) for row in operators],
        "errors",
    )
    if what_if:
        tried = [[_rules(one.fp32_cast_of), number(one.latency_us), number(one.more_us), _percent(one.error)]
                 for one in what_if]  # fmt: skip
        body += "<h3>What if</h3>" + table(["--fp32-cast-of", "us>", "more us>", "error %>"], tried)
    return Overlay([Section("Where numbers depart from float32", _plot(operators), body)], columns)


def _row(row: OperatorError) -> list[Cell]:
    errors = [_cell(getattr(row, field)) for _, field, *_ in _CURVES]
    return [row.name, row.op, row.where, row.rounds, *errors, "yes" if row.is_explained else "no"]


def _plot(operators: Sequence[OperatorError]) -> Any:
    made = figure(
        title="Error by operator, in the model's order", y_axis_type="log", height=320, sizing_mode="stretch_width",
        tools="xpan,xwheel_zoom,reset,save", active_scroll="xwheel_zoom", output_backend="canvas",
    )  # fmt: skip
    made.toolbar.logo = None
    for label, field, color, marker in _CURVES:
        points = list(_points(operators, field))
        source = ColumnDataSource({name: [point[at] for point in points] for at, name in enumerate("xyns")})
        if marker == "line":
            made.line("x", "y", source=source, color=color, line_width=2, legend_label=label)
        else:
            made.scatter("x", "y", source=source, color=color, size=8, marker=marker, legend_label=label)
    made.add_tools(HoverTool(tooltips=[("", "@n"), ("error", "@s")]))
    made.xaxis.axis_label, made.yaxis.axis_label = "operator", "relative L2 error"
    made.legend.click_policy = "hide"
    made.add_layout(made.legend[0], "right")
    return made


def _points(operators: Sequence[OperatorError], field: str) -> Iterator[tuple[int, float, str, str]]:
    for at, row in enumerate(operators):
        value: Apart | None = getattr(row, field)
        if value is not None:
            yield at, max(value.error, _LEAST), f"{row.op} {row.name}", percent(value.error)


def _cell(value: Apart | None) -> Cell:
    return "" if value is None else _percent(value.error)


def _percent(error: float) -> Cell:
    return number(100 * error, ".3g")


def _rules(choice: dict[str, str]) -> str:
    return ", ".join(f"{name}={mode}" for name, mode in choice.items())
