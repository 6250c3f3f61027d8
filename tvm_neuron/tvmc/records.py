"""What tuning found, as a file: the options of a build, and what they gained."""

import json
import os
import warnings
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from tvm_neuron.cache import open_store
from tvm_neuron.codegen.found_before import remembering
from tvm_neuron.errors import ModelError
from tvm_neuron.neff import write_aside
from tvm_neuron.tvmc import archive

_FORMAT = "tvm_neuron tuning records 1"


@dataclass(frozen=True)
class Records:
    """The level of optimisation that gave the quicker program of a model, and both modelled times."""

    optlevel: int
    untuned_us: float
    tuned_us: float
    target: str
    model: str


def write_records(path: str | os.PathLike[str], found: Records) -> None:
    """Writes them, whole or not at all."""
    write_aside(Path(path), [(json.dumps({"format": _FORMAT} | asdict(found), indent=2) + "\n").encode()])


def read_records(path: str | os.PathLike[str]) -> Records:
    """What tuning found.

    Raises ModelError: they are no records of this tuner.
    """
    try:
        found = json.loads(archive.read_bytes(path))
        if found.pop("format") == _FORMAT:
            return Records(**found)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise ModelError(f"'{path}' has no records that tvmc.tune() wrote; those of other tuners say nothing here")


def found_before() -> AbstractContextManager[None]:
    """Builds inside the `with` block search for nothing that the user's cache knows; trouble with it is a warning.

    Raises OptionError: see `open_store`.
    """
    return remembering(open_store(None, lambda text: warnings.warn(text, stacklevel=2)))
