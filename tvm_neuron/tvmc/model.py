"""TVMCModel: an imported model and its weights, which can be saved as a tarball."""

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, TextIO

import onnx
import tvm

from tvm_neuron.errors import ModelError, OptionError
from tvm_neuron.relay.modules import is_relay
from tvm_neuron.relay.text import module_text
from tvm_neuron.tvmc import archive
from tvm_neuron.tvmc.loading import format_of, read

Shapes = Mapping[str, Sequence[int]]
MODULE, WEIGHTS = "mod.json", "mod.params"
_SOURCE, _FILE = "source.json", "model"


@dataclass(frozen=True)
class Source:
    """The file that a model was read from, and how."""

    kind: str
    content: bytes
    shapes: dict[str, list[int]]
    kwargs: dict[str, Any] = field(default_factory=dict)


class TVMCModel:
    """A module with its weights; from a file that `save` wrote if `model_path` is given.

    Raises ModelError: neither is given, or the file is none that `save` wrote.
    """

    def __init__(
        self, mod: tvm.IRModule | None = None, params: Mapping[str, Any] | None = None,
        model_path: str | os.PathLike[str] | None = None, *, source: Source | None = None,
    ) -> None:  # fmt: skip
        if mod is None and model_path is None:
            raise ModelError("TVMCModel takes a module, or model_path, a file that its save() wrote")
        self.mod: Any = mod
        self.params = dict(params or {})
        self._source = source
        if model_path is not None:
            self.load(model_path)

    @property
    def fingerprint(self) -> str:
        """Tells whether two models are the same; empty where it can't be told."""
        if self._source is not None:
            said = repr((self._source.kind, self._source.shapes, self._source.kwargs))
            return sha256(said.encode() + self._source.content).hexdigest()
        if is_relay(self.mod):
            return sha256(tvm.ir.save_json(self.mod).encode() + tvm.runtime.save_param_dict(self.params)).hexdigest()
        return ""

    def save(self, model_path: str | os.PathLike[str]) -> None:
        """Writes a tarball: of a module of Relay and its weights, else of the file that the model was read from.

        Raises ModelError: it is a module of Relax that was read from no file, of which TVM has no form to be kept.
        """
        if self._source is not None:
            said = {"kind": self._source.kind, "shapes": self._source.shapes, "kwargs": self._source.kwargs}
            archive.write(model_path, {_SOURCE: json.dumps(said).encode(), _FILE: self._source.content})
        elif is_relay(self.mod):
            weights = tvm.runtime.save_param_dict(self.params)
            archive.write(model_path, {MODULE: tvm.ir.save_json(self.mod).encode(), WEIGHTS: bytes(weights)})
        else:
            raise ModelError("a module of Relax that tvmc.load() did not read can't be saved: keep the model's file")

    def load(self, model_path: str | os.PathLike[str]) -> None:
        """Reads what `save` wrote.

        Raises ModelError: the file is something else.
        """
        files = archive.read(model_path, (MODULE, WEIGHTS, _SOURCE, _FILE))
        try:
            if _SOURCE in files:
                said = json.loads(files[_SOURCE])
                self._source = Source(said["kind"], files[_FILE], said["shapes"], said["kwargs"])
                self.mod, self.params = _imported(self._source)
            else:
                self.mod = tvm.ir.load_json(files[MODULE].decode())
                self.params = dict(tvm.runtime.load_param_dict(files[WEIGHTS]))
        except (KeyError, ValueError, RuntimeError, TypeError) as error:
            raise ModelError(f"'{model_path}' is none that TVMCModel.save() wrote, or damaged") from error

    def summary(self, file: TextIO | None = None) -> None:
        """Prints the module."""
        text = module_text(self.mod) if is_relay(self.mod) else self.mod.script()
        (file or sys.stdout).write(f"{text}\n")


def load_model(
    path: str | os.PathLike[str], model_format: str | None = None, shape_dict: Shapes | None = None, **kwargs: Any
) -> TVMCModel:
    """The model in a file; `kwargs` go to the importer.

    `shape_dict` gives inputs their shapes: those that are dynamic or to be changed.

    Raises OptionError (no such format), ModelError (no such file, or not what the format says).
    """
    file = Path(path)
    if not file.exists():
        raise ModelError(f"'{path}' does not exist")
    kind = format_of(file, model_format)
    if kind == "tvmc":
        if shape_dict or kwargs:
            raise OptionError(f"'{file}' is an imported model, whose shapes are fixed: load the model file again")
        return TVMCModel(model_path=file)
    mod, params = read(file, kind, shape_dict or {}, kwargs)
    shapes = {name: list(shape) for name, shape in (shape_dict or {}).items()}
    whole = onnx.load(file).SerializeToString() if kind == "onnx" else file.read_bytes()  # weights beside it, too
    return TVMCModel(mod, params, source=Source(kind, whole, shapes, kwargs))


def _imported(source: Source) -> tuple[tvm.IRModule, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, _FILE)
        file.write_bytes(source.content)
        mod, params = read(file, source.kind, source.shapes, source.kwargs)
    return mod, dict(params)
