"""The cache of the command line: a second compile of the same model in the same way copies what the first one made."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from os.path import isfile
from pathlib import Path
from typing import Any

from tvm_neuron.bundle import Request
from tvm_neuron.cache import Store, fingerprint, open_store

Summary = dict[str, Any]
"""What a compile tells when it is done: `headline`, `report` (the report's values) and `warnings`."""


def add_arguments(parser: argparse._ActionsContainer) -> None:
    """The argument about the cache."""
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="where to keep what was compiled, for the next time; 'off': nowhere. Without it $NEURON_CC_CACHE, or "
        "tvm_neuron in the user's cache, at most $NEURON_CC_CACHE_MB (4096)",
    )


@dataclass(frozen=True)
class Cached:
    """The entry of one command line."""

    store: Store
    key: str
    files: list[Path]
    state: list[tuple[int, int] | None]

    def fetch(self, output: Path) -> Summary | None:
        """Writes the output as it was compiled before, and gives what was told then; None if it has to be compiled."""
        return self.store.fetch(self.key, output)

    def keep(self, output: Path, summary: Summary) -> None:
        """For the next time; not if the model was written over while it was compiled."""
        if self.state == [_state(path) for path in self.files]:
            self.store.keep(self.key, output, summary)


def find(options: argparse.Namespace, request: Request, on_stage: Callable[[str], None]) -> Cached | None:
    """The entry for a command line that asks for `request`; None without a cache.

    `on_stage` is also told of what is wrong with the cache.

    Raises:
        OptionError: see `open_store`.
    """
    from tvm_neuron.frontend import mxnet
    from tvm_neuron.frontend.onnx.files import model_files

    store = open_store(options.cache, on_stage)
    if store is None:
        return None
    on_stage("look into the cache")
    model = Path(options.model)
    if model.is_dir():  # a SavedModel
        files = sorted(path for path in model.rglob("*") if path.is_file())
    else:
        files = [*mxnet.files_of(model)] if mxnet.is_mxnet(model) else model_files(model)
    wishes = request.to_dict() | {"name": model.stem}
    return Cached(store, fingerprint(wishes, files), files, [_state(path) for path in files])


def _state(path: Path) -> tuple[int, int] | None:
    found = path.stat() if isfile(path) else None
    return (found.st_mtime_ns, found.st_size) if found else None
