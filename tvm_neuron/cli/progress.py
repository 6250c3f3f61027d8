"""Progress of a command: a live line on a terminal, one plain line a stage elsewhere; on stderr either way."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tvm_neuron.cli.estimate import Estimate

OnStage = Callable[[str], None]


@contextmanager
def stages(title: str, *, is_quiet: bool = False) -> Iterator[OnStage]:
    """Call the value with the name of each stage as it begins; of stages of a compile it is told what they leave."""
    console = Console(stderr=True)
    start, estimate = time.monotonic(), Estimate()

    def described(stage: str) -> str:
        left = estimate.seconds_left(stage, time.monotonic() - start)
        return stage if left is None else f"{stage} (about {left:.0f} s left)"

    if is_quiet:
        yield lambda _stage: None
    elif console.is_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task(title)
            yield lambda stage: progress.update(task, description=f"{title}: {described(stage)}")
    else:

        def tell(stage: str) -> None:
            print(f"{title}: {time.monotonic() - start:5.1f} s {described(stage)}", file=sys.stderr, flush=True)

        yield tell
