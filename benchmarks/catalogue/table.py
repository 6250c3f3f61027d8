"""The records as a line, a summary, and the table of docs/catalogue.md."""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from benchmarks.catalogue.records import Record, core_share, is_wrong, mean, over_bound, ratio

HEAD = (
    "network", "family", "chip", "outcome", "core", "CPU", "products", "error", "bound", "fp32 error", "us", "ratio",
    "over bound", "compiled s", "MB", "on the CPU, or why not",
)  # fmt: skip
_TEXTS = ("network", "family", "chip", "outcome", "on the CPU, or why not")
_LONGEST = 120


def line(record: Record) -> str:
    """What the terminal shows."""
    return " | ".join(cell for cell in cells(record) if cell)


def cells(record: Record) -> tuple[str, ...]:
    """What the table says of it."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in record.get("cpu_operators", {}).items())
    told = record.get("message") or kinds
    return (
        record["name"], record["family"], record["chip"], "wrong" if is_wrong(record) else record["outcome"],
        str(record.get("operators_on_core", "")), str(record.get("operators_on_cpu", "")), _share(core_share(record)),
        _percent(record.get("error")), _percent(record.get("bound")), _short(record.get("error_fp32")),
        _number(record.get("latency_us"), 1), _number(ratio(record), 2), _number(over_bound(record), 2),
        _number(record.get("compile_seconds"), 1), _number(record.get("peak_bytes"), 0, 1e6),
        " ".join(told[:_LONGEST].replace("|", "/").split()),
    )  # fmt: skip


def markdown(files: Sequence[Mapping[str, Record]]) -> str:
    """Summaries, then a row for each network and chip."""
    rows = sorted((record for file in files for record in file.values()), key=lambda each: (each["name"], each["chip"]))
    rule = ["---" if name in _TEXTS else "---:" for name in HEAD]
    lines = (f"| {' | '.join(row)} |" for row in (HEAD, rule, *map(cells, rows)))
    return "\n".join([*(f"{summary(list(file.values()))}\n" for file in files), *lines])


def summary(found: Sequence[Record]) -> str:
    """Counts, the mean and the worst ratio, and what compiling takes."""
    if not found:
        return "nothing measured"
    outcomes = Counter("wrong" if is_wrong(record) else record["outcome"] for record in found)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    ratios = {record["name"]: value for record in found if (value := ratio(record))}
    text = f"{len(found)} networks on {found[0]['chip']}: {counts}."
    if ratios:
        worst = max(ratios, key=lambda name: ratios[name])
        seconds = [record["compile_seconds"] for record in found if "compile_seconds" in record]
        over = mean(map(over_bound, found))
        bounded = "" if math.isnan(over) else f", over the bound {over:.2f}"
        text += (
            f" Modelled time over roofline: geometric mean {mean(ratios.values()):.2f}, median"
            f" {statistics.median(ratios.values()):.2f}, worst {ratios[worst]:.1f} ({worst}){bounded}. Compile"
            f" seconds: median {statistics.median(seconds):.1f}, most {max(seconds):.1f}."
        )
    return text


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.2%}"


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.0e}"


def _number(value: float | None, digits: int, unit: float = 1.0) -> str:
    return "" if value is None else f"{value / unit:,.{digits}f}"
