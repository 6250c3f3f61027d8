"""Measured: what one simulator took for one network, as a process of its own."""

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Wall and CPU time of the whole process, the most memory it held (None where there is no /proc), the cycles."""

    version: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int | None
    cycles: int
    array: str


def measure(python: str | Path, distribution: str, script: str, request: Mapping[str, Any]) -> Measured:
    """Runs `script` of this folder on `request`.

    Raises:
        RuntimeError: it failed; the message has the end of what it said.
    """
    with TemporaryDirectory() as name:
        file = Path(name, "request.json")
        file.write_text(json.dumps(request))
        command = [str(python), str(HERE / "run_and_tell.py"), distribution, str(HERE / script), str(file), name]
        begin = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - begin
    if done.returncode:
        raise RuntimeError(f"{script} failed under {python} with {done.returncode}:\n{_end(done.stderr)}")
    return read(done.stdout.splitlines(), seconds)


def read(lines: Sequence[str], seconds: float) -> Measured:
    """From the last two lines of what a script prints: its result, then what it took.

    Raises:
        ValueError: they are none, or lack something.
    """
    try:
        result, told = map(json.loads, lines[-2:])
        return Measured(seconds=seconds, **{"array": "128 x 128"} | result | told)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the script's last two lines are no result ({error}): {_end(chr(10).join(lines))}") from error


def _end(text: str) -> str:
    return "\n".join(text.splitlines()[-8:])
