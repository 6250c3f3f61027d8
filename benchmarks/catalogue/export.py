"""From an entry to files: a model by an exporter of torch.

FOLDER/EXPORTER holds model.onnx and what onnxruntime makes of its inputs (see `reference`), or, of an exporter that
fails, failed.txt.
"""

import contextlib
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from benchmarks.catalogue.entry import Arrays, Entry
from benchmarks.catalogue.reference import keep_reference
from benchmarks.catalogue.sources import make
from benchmarks.catalogue.weights import randomise

if TYPE_CHECKING:
    import torch

EXPORTERS = ("dynamo", "torchscript")
MODEL, FAILED = "model.onnx", "failed.txt"
OPSET = 18
LONGEST_MESSAGE = 200


def export(entry: Entry, batch: int, folder: Path, exporters: Sequence[str]) -> None:
    """Writes what the first of the exporters that works makes of it; of those that don't, why."""
    import torch

    module, inputs = make(entry, batch)
    torch.manual_seed(0)
    randomise(module, inputs)
    for exporter in exporters:
        place = folder / exporter  # complete as soon as it has a model
        place.mkdir(parents=True, exist_ok=True)
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")  # both exporters warn of their own internals
                _write(_positional(module, tuple(inputs)), inputs, exporter, place / "torch.onnx")
            keep_reference(onnx.load(place / "torch.onnx"), inputs, place)
            (place / "torch.onnx").rename(place / MODEL)
            return
        except Exception as error:
            (place / "torch.onnx").unlink(missing_ok=True)
            cause = error.__cause__ or error
            lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
            (place / FAILED).write_text(f"{type(cause).__name__}: {lines[0] if lines else ''}"[:LONGEST_MESSAGE])


def _write(module: "torch.nn.Module", inputs: Arrays, exporter: str, file: Path) -> None:
    import torch

    given = tuple(torch.from_numpy(array) for array in inputs.values())
    with torch.no_grad():
        results = [f"y{number}" for number in range(len(module(*given)))]
    torch.onnx.export(
        module, given, file, input_names=[*inputs], output_names=results, dynamo=exporter == "dynamo",
        opset_version=OPSET, external_data=False, verbose=False,
    )  # fmt: skip


def _positional(module: "torch.nn.Module", names: tuple[str, ...]) -> "torch.nn.Module":
    import torch

    class Positional(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tuple(tensors_of(self.module(**dict(zip(names, arguments, strict=True)))))

    return Positional().eval()


def tensors_of(found: Any) -> Iterator["torch.Tensor"]:
    """All of a result, whatever it is packed in."""
    import torch

    if isinstance(found, torch.Tensor):
        yield found
    elif isinstance(found, (list, tuple, Mapping)):
        for part in found.values() if isinstance(found, Mapping) else found:
            yield from tensors_of(part)
