"""The packages that networks are from, and the list of all entries, which is kept beside their files."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.catalogue import of_diffusers, of_timm, of_torchvision, of_transformers
from benchmarks.catalogue.entry import Entry, Network

_MAKERS: dict[str, Callable[[str, int], Network]] = {
    "timm": of_timm.make, "torchvision": of_torchvision.make, "transformers": of_transformers.make,
    "diffusers": of_diffusers.make,
}  # fmt: skip
_LIST = "entries.json"
ONNX_FOLDER = Path.home() / ".cache" / "tvm_neuron_catalogue"
"""Where exported networks are kept, beside the compiler's own cache: that takes no folder with files of others."""


def entries(folder: Path) -> list[Entry]:
    """All entries; finding the smallest of each family takes minutes, so it is done once for a folder.

    Raises ImportError: the list isn't there yet, and a package is missing.
    """
    file = folder / _LIST
    if not file.exists():
        found = [
            entry for source in (of_timm, of_torchvision, of_transformers, of_diffusers) for entry in source.entries()
        ]
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps([asdict(entry) for entry in found], indent=1))
    return [Entry(**each) for each in json.loads(file.read_text())]


def make(entry: Entry, batch: int) -> Network:
    """The network with seeded random weights."""
    return _MAKERS[entry.source](entry.model, batch)
