"""Progress of a command: a live line on a terminal, one plain line a stage elsewhere; on stderr either way."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

OnStage = Callable[[str], None]


@contextmanager
def stages(title: str, *, is_quiet: bool = False) -> Iterator[OnStage]:
    """Call the value with the name of each stage as it begins."""
    console = Console(stderr=True)
    if is_quiet:
        yield lambda _stage: None
    elif console.is_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task(title)
            yield lambda stage: progress.update(task, description=f"{title}: {stage}")
    else:
        start = time.monotonic()
        yield lambda stage: print(f"{title}: {time.monotonic() - start:5.1f} s {stage}", file=sys.stderr, flush=True)
