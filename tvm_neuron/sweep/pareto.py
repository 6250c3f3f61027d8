"""Pareto's best: the points of each model that no other beats in everything that one would have less of."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_neuron.sweep.point import COMPILED

if TYPE_CHECKING:
    import pandas as pd

GOALS = ["latency_us", "us_per_row", "memory_bytes", "area_mm2"]


def timed(frame: "pd.DataFrame") -> Iterator[tuple[str, "pd.DataFrame"]]:
    """Of each model the rows that have a time."""
    if "latency_us" not in frame:  # nothing was compiled
        return
    rows = frame[(frame["outcome"] == COMPILED) & frame["latency_us"].notna()]
    yield from rows.groupby("model", sort=False)


def best(frame: "pd.DataFrame") -> Iterator[tuple[str, "pd.DataFrame"]]:
    """Of each model the best rows."""
    for model, rows in timed(frame):
        yield model, rows[is_best(rows)]


def is_best(rows: "pd.DataFrame") -> Any:
    """A boolean for each row: no other is at most as large in all of GOALS and smaller in one."""
    values = rows[GOALS].to_numpy(np.float64)
    return np.array(
        [not np.any(np.all(values <= one, axis=1) & np.any(values < one, axis=1)) for one in values], np.bool_
    )
