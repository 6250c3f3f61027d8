"""Two files of records side by side: how much quicker or slower the networks of both became.

Times are those of one input, so that files of two batches can be compared.
"""

import math
from collections.abc import Mapping

from benchmarks.catalogue.records import Record, is_wrong

WORST = 15


def comparison(old: Mapping[str, Record], new: Mapping[str, Record]) -> str:
    """Ratios of modelled times, new over old: their mean, the largest changes, and what is built or right no more."""
    timed = {
        name: (_each_us(new[name]) / _each_us(old[name]), old[name], new[name])
        for name in old.keys() & new.keys()
        if old[name].get("latency_us") and new[name].get("latency_us")
    }
    lines = [f"{len(timed)} networks in both"]
    if timed:
        lines[0] += f"; new over old, geometric mean {_mean([change for change, *_ in timed.values()]):.4f}"
        seconds = [(b["compile_seconds"], a["compile_seconds"]) for _, a, b in timed.values()]
        lines.append(f"compile seconds {sum(b for b, _ in seconds):.0f}, before {sum(a for _, a in seconds):.0f}")
    ordered = sorted(timed.items(), key=lambda item: item[1][0])
    for title, chosen in (("slower", ordered[::-1]), ("quicker", ordered)):
        lines += [
            f"{title}: {name} {change:.3f}x, {_each_us(a):,.1f} to {_each_us(b):,.1f} us"
            for name, (change, a, b) in chosen[:WORST]
            if (change > 1 if title == "slower" else change < 1)
        ]
    for name in sorted(old.keys() & new.keys()):
        for what, before, after in (("outcome", *_outcomes(old[name], new[name])),
                                    ("wrong", is_wrong(old[name]), is_wrong(new[name]))):  # fmt: skip
            if before != after:
                lines.append(f"{what}: {name} was {before}, is {after}")
    return "\n".join(lines)


def _each_us(record: Record) -> float:
    """Of one input of a batch."""
    return float(record["latency_us"] / record.get("batch", 1))


def _outcomes(old: Record, new: Record) -> tuple[str, str]:
    return old["outcome"], new["outcome"]


def _mean(changes: list[float]) -> float:
    return math.exp(sum(map(math.log, changes)) / len(changes))
