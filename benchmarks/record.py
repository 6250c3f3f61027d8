"""Record: the file of results, which grows group by group as long as the code and the machine are the same."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.row import Row


def load(file: Path, commit: str, processor: str) -> list[Row]:
    """The rows of earlier runs of this commit on this machine; none if the file is of others, or isn't there."""
    if not file.exists():
        return []
    told = json.loads(file.read_text())
    if (told.get("commit"), told.get("machine", {}).get("processor")) != (commit, processor) or commit == "unknown":
        return []
    return [Row.from_json(row) for row in told["rows"]]


def merged(earlier: Sequence[Row], rows: Sequence[Row], order: Collection[str]) -> list[Row]:
    """`rows`, each with its earlier values, and the earlier rows of groups that were not run now; groups in `order`."""
    before = {row.key: row for row in earlier}
    now = {row.group for row in rows}
    found = [row for row in earlier if row.group not in now]
    for row in rows:
        last = before.get(row.key)
        found.append(replace(row, earlier=(*last.earlier, last.ours)) if last else row)
    return sorted(found, key=lambda row: list(order).index(row.group))


def save(file: Path, commit: str, facts: Mapping[str, str], rows: Sequence[Row]) -> None:
    """Writes all rows."""
    file.parent.mkdir(parents=True, exist_ok=True)
    told = {"commit": commit, "date": time.strftime("%Y-%m-%d"), "machine": facts}
    file.write_text(json.dumps(told | {"rows": [row.to_dict() for row in rows]}, indent=1))
