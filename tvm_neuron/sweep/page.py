"""page: a sweep as one HTML file that needs nothing else: its best points, what trades for what, heat maps."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from bokeh.embed import components
from bokeh.models import BasicTicker, ColorBar, ColumnDataSource, FactorRange, HoverTool, LinearColorMapper
from bokeh.palettes import cividis
from bokeh.plotting import figure
from bokeh.resources import Resources

from tvm_neuron.profile.page.plots import BLUE, ORANGE
from tvm_neuron.profile.page.tables import Cell, document, number, table
from tvm_neuron.sweep.pareto import GOALS, is_best, timed

_SHADES = cividis(256)
_TRADES = (("latency_us", "memory_bytes"), ("latency_us", "area_mm2"), ("us_per_row", "memory_bytes"))
_UNITS = {
    "latency_us": ("latency, us", 1.0), "memory_bytes": ("DRAM that the program takes, MB", 1e6),
    "area_mm2": ("area, mm2 (a proxy)", 1.0), "us_per_row": ("us for each row of the batch", 1.0),
}  # fmt: skip
_FORMS = {"i": ",", "f": ",.1f"}
_SHOWN = ("outcome", "latency_us", "us_per_row", "memory_bytes", "area_mm2", "bound_us", "reason")


def page(frame: pd.DataFrame, axes: Sequence[str]) -> str:
    """The page of a sweep's table, in which the columns `axes` were varied."""
    plots, sections = dict[str, Any](), list[tuple[str, str, list[str]]]()
    for at, (model, rows) in enumerate(timed(frame)):
        inner = [axis for axis in axes if axis != "model"]
        best = is_best(rows)
        drawn = {f"trade{at} {n}": _trade(rows, best, inner, *pair) for n, pair in enumerate(_TRADES)}
        maps = {f"map{at} {n}": _heat_map(rows, *pair) for n, pair in enumerate(_pairs(inner))}
        plots |= drawn | maps
        sections.append((f"{model}: what trades for what", _best(rows[best], inner), list(drawn)))
        if maps:
            sections.append((f"{model}: least us for each row, over all other choices", "", list(maps)))
    script, divs = components(plots) if plots else ("", {})
    body = [f"<h1>Sweep of {len(frame)} points</h1>", f'<p class="note">{escape(_summary(frame))}</p>']
    for title, text, names in sections:
        drawn_here = "".join(f'<div class="plot">{divs[name]}</div>' for name in names)
        body.append(f"<section><h2>{escape(title)}</h2>{text}{drawn_here}</section>")
    body.append(f"<section><h2>All points</h2>{_all(frame, axes)}</section>")
    resources = Resources(mode="inline", components=["bokeh"], log_level="warn")
    return document("Sweep", "".join(body), resources.render_js(), script)


def _summary(frame: pd.DataFrame) -> str:
    counts = ", ".join(f"{count} {outcome}" for outcome, count in frame["outcome"].value_counts().items())
    return (
        f"{counts}. All numbers are of the hardware model. No other point of its model beats one of the best in "
        "latency, time for each row, memory and area at once; area is a proxy, see docs/sweep.md."
    )


def _label(row: Any, axes: Sequence[str]) -> str:
    return ", ".join(f"{axis} = {getattr(row, axis)}" for axis in axes)


def _figure(title: str, **options: Any) -> Any:
    made = figure(title=title, height=320, sizing_mode="stretch_width", output_backend="canvas", **options)
    made.toolbar.logo = None
    return made


def _trade(rows: pd.DataFrame, best: Any, axes: Sequence[str], x: str, y: str) -> Any:
    """Two numbers of all points, the best of them marked."""
    (x_label, x_unit), (y_label, y_unit) = _UNITS[x], _UNITS[y]
    made = _figure(f"{x_label} and {y_label}", tools="pan,wheel_zoom,box_zoom,reset,save")
    for mine, color, marker, legend in ((~best, BLUE, "circle", "others"), (best, ORANGE, "diamond", "the best")):
        chosen = rows[mine]
        labels = [_label(row, axes) for row in chosen.itertuples()]
        columns = {"x": chosen[x] / x_unit, "y": chosen[y] / y_unit, "label": labels}
        made.scatter(
            "x", "y", source=ColumnDataSource(columns), color=color, marker=marker, size=10, fill_alpha=0.6,
            legend_label=legend,
        )  # fmt: skip
    made.add_tools(HoverTool(tooltips=[("", "@label"), (x_label, "@x{0,0.0}"), (y_label, "@y{0,0.00}")]))
    made.xaxis.axis_label, made.yaxis.axis_label = x_label, y_label
    made.add_layout(made.legend[0], "right")
    return made


def _pairs(axes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What heat maps have on their axes; a single choice is shown beside the chip."""
    yield from combinations(axes, 2) if len(axes) != 1 else [(axes[0], "chip")]


def _heat_map(rows: pd.DataFrame, x: str, y: str) -> Any:
    least = rows.groupby([x, y], sort=False)["us_per_row"].min().reset_index()
    low, high = least["us_per_row"].min(), least["us_per_row"].max()
    mapper = LinearColorMapper(palette=_SHADES, low=low, high=high if high > low else low + 1)
    names = {axis: [str(value) for value in dict.fromkeys(rows[axis].sort_values())] for axis in (x, y)}
    made = _figure(f"{x} and {y}", x_range=FactorRange(*names[x]), y_range=FactorRange(*names[y]), tools="save")
    source = ColumnDataSource(
        {
            "x": least[x].astype(str), "y": least[y].astype(str), "us": least["us_per_row"],
            "text": [f"{us:,.1f}" for us in least["us_per_row"]],
            "ink": ["white" if us < (low + high) / 2 else "black" for us in least["us_per_row"]],
        }
    )  # fmt: skip
    made.rect("x", "y", 1, 1, source=source, line_color=None, fill_color={"field": "us", "transform": mapper})
    made.text("x", "y", text="text", text_color="ink", source=source, text_align="center", text_baseline="middle")
    made.add_layout(ColorBar(color_mapper=mapper, ticker=BasicTicker(), title="us"), "right")
    made.xaxis.axis_label, made.yaxis.axis_label = x, y
    return made


def _best(rows: pd.DataFrame, axes: Sequence[str]) -> str:
    """The best points as a table."""
    heads = [*axes, *(f"{_UNITS[goal][0]}>" for goal in GOALS)]
    cells: list[list[Cell]] = [
        [*(str(row[axis]) for axis in axes), *(number(row[goal] / _UNITS[goal][1], ",.2f") for goal in GOALS)]
        for row in rows.sort_values(GOALS[0]).to_dict("records")
    ]
    return table(heads, cells)


def _all(frame: pd.DataFrame, axes: Sequence[str]) -> str:
    names = [*axes, *(name for name in _SHOWN if name in frame)]
    forms = {name: _FORMS.get(frame[name].dtype.kind, "") for name in names}
    rows = [[_cell(row[name], forms[name]) for name in names] for row in frame.to_dict("records")]
    return table([f"{name}>" if forms[name] else name for name in names], rows, "points")


def _cell(value: Any, form: str) -> Cell:
    if not form:
        return str(value)
    return number(value, form) if np.isfinite(value) else ""
