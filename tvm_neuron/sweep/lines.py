"""JSON lines: a file of values that is appended to, and read again after whoever wrote it was killed."""

import json
from pathlib import Path
from typing import Any


def load(file: Path) -> list[Any]:
    """The values of all whole lines; none if there is no file."""
    if not file.exists():
        return []
    found = []
    for line in file.read_text("utf-8", errors="replace").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:  # what a killed writer left of its last line
            continue
    return found


def append(file: Path, value: Any) -> None:
    """Adds a line, of its own also where the last writer was killed within one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value) + "\n"
    with file.open("ab+") as stream:
        if stream.tell():
            stream.seek(-1, 2)
            text = text if stream.read(1) == b"\n" else f"\n{text}"
        stream.write(text.encode())
