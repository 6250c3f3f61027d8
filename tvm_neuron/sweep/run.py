"""run: a product of choices, compiled and timed; a DataFrame out, and a folder that a later run goes on with."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tvm_neuron import neff
from tvm_neuron.bundle import IoConfig
from tvm_neuron.codegen.options import BuildOptions
from tvm_neuron.errors import NeffError, from_extra
from tvm_neuron.jobs import Lost, results
from tvm_neuron.sweep import lines
from tvm_neuron.sweep.choices import Point, Value, points
from tvm_neuron.sweep.point import LOST, Row, about, measure

if TYPE_CHECKING:
    import pandas as pd

POINTS, TABLE, PAGE = "points.jsonl", "sweep.parquet", "sweep.html"


@dataclass(frozen=True)
class Progress:
    """After each point: how many of how many are there, the seconds that the others may take, and the point's row."""

    done: int
    total: int
    seconds_left: float
    row: Row


def _ignore(_progress: Progress) -> None:
    """The default listener."""


def run(
    models: Iterable[str | Path],
    chips: Iterable[str] = ("inf1",),
    vary: Mapping[str, Sequence[Value]] | None = None,
    *,
    folder: str | Path | None = None,
    options: BuildOptions | None = None,
    inputs: IoConfig | None = None,
    processes: int | None = None,
    address: str = "",
    on_point: Callable[[Progress], None] = _ignore,
) -> "pd.DataFrame":
    """A row for each of `models` (ONNX files) on each of `chips` with each choice of `vary`; see docs/sweep.md.

    `vary` has values by name: `batch`, a quantity of the chip (`sbuf_bytes_per_partition`, ...), a field of
    `BuildOptions` (`optlevel`, ...) or of its `tuning`; `options` are the others. `inputs` gives sizes that the files
    leave open. In `folder` each point is written
    when it is done, those that are there are not compiled again, and at the end there are a table and a page of plots.
    Points are compiled in `processes` at once, or on the cluster of Ray at `address`, where the files have the same
    names.

    Raises:
        NeuronError: before anything is compiled: a file, chip, name or value that does not exist, no such cluster, an
            extra that is not installed; at the end: the folder can't be written.
    """
    with from_extra("sweep", "a sweep"):
        import pandas as pd
        import ray  # noqa: F401

        from tvm_neuron.sweep.page import page
    asked = points(map(str, models), chips, vary or {}, options or BuildOptions(), inputs)
    place = Path(folder) if folder is not None else None
    try:
        found = _found(place)
        missing = [point for point in asked if point.key not in found]
        ends, there = [time.monotonic()], len(asked) - len(missing)
        for done, (point, result) in enumerate(results(measure, missing, processes=processes, address=address), 1):
            row = {"outcome": LOST, "reason": result.reason} if isinstance(result, Lost) else result
            found[point.key] = row
            if place is not None:
                lines.append(place / POINTS, {"key": point.key, "of": about(point), "row": row})
            ends.append(time.monotonic())
            counted = ends[1:] if done > 1 else ends  # before the first one ended, processes had to start
            left = (counted[-1] - counted[0]) / (len(counted) - 1) * (len(missing) - done)
            on_point(Progress(there + done, len(asked), left, about(point) | row))
        frame = pd.DataFrame([about(point) | found[point.key] for point in asked])
        if place is not None:
            neff.write_aside(place / TABLE, [frame.to_parquet()])
            neff.write_aside(place / PAGE, [page(frame, _axes(asked)).encode()])
    except OSError as error:
        raise NeffError(f"the sweep can't be kept in '{folder}': {error.strerror or error}") from error
    return frame


def _found(place: Path | None) -> dict[str, Row]:
    """The rows that are there; a lost one is tried again."""
    known = lines.load(place / POINTS) if place is not None else []
    return {each["key"]: each["row"] for each in known if each["row"]["outcome"] != LOST}


def _axes(asked: Sequence[Point]) -> list[str]:
    """What was varied: names of columns with more than one value."""
    rows = [{"model": each.model, "chip": each.chip, **each.choice} for each in asked]
    return [name for name in (rows[0] if rows else ()) if len({row[name] for row in rows}) > 1]
