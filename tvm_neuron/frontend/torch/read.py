"""Files of torch: exported programs (.pt2) and scripts (.pt). Nothing in them is executed while they are read."""

import zipfile
from pathlib import Path
from typing import Any

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.cause import cause
from tvm_neuron.frontend.torch.need import need_torch
from tvm_neuron.frontend.torch.quiet import quiet

SUFFIXES = (".pt2", ".pt", ".pth")


def read(path: Path) -> Any:
    """The ExportedProgram or ScriptModule in a file.

    Raises:
        ModelError: there is none, or it holds a pickle of a module, or weights alone.
        OptionError: torch is not installed.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except OSError as error:
        raise ModelError(f"'{path}' can't be read: {error.strerror}") from error
    except zipfile.BadZipFile:
        names = []
    if any(name.endswith("constants.pkl") for name in names):
        return _read(path, need_torch().jit.load)
    if path.suffix == ".pt2":
        return _read(path, need_torch().export.load)
    raise ModelError(
        f"'{path}' holds a pickle: weights alone, or a module whose code would run when it is read. Write the program: "
        "torch.export.save(torch.export.export(model, example_inputs), 'model.pt2'), or a script by torch.jit.save"
    )


def _read(path: Path, load: Any) -> Any:
    try:
        with quiet():  # torch logs what it raises
            return load(path)
    except Exception as error:
        raise ModelError(f"'{path}' can't be read as a program of torch: {cause(error)}") from error
