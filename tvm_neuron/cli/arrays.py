"""Arrays in .npz files."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tvm_neuron.errors import InputError
from tvm_neuron.neff import write_aside

Arrays = dict[str, NDArray[Any]]


def read_npz(path: str) -> Arrays:
    """The arrays in the file, by name.

    Raises:
        InputError: it can't be read, or holds something else.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"'{path}' can't be read: {error.strerror}") from error
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            found = {name: _typed(file[name]) for name in file.files}
    except Exception as error:  # a damaged file can trip zipfile, zlib and NumPy in any way
        raise InputError(f"'{path}' is no .npz file: write it with numpy.savez(path, name=array, ...)") from error
    if lost := next((name for name, array in found.items() if array.dtype == np.dtype("V1")), ""):
        raise InputError(f"'{path}', array '{lost}': NumPy's files don't keep 8-bit floats; save it as float32")
    return found


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """The arrays as a file, never half written.

    Raises:
        NeffError: it can't be written.
    """
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **arrays)
    write_aside(path, [out.getbuffer()])


def _typed(array: NDArray[Any]) -> NDArray[Any]:
    """NumPy's files know no bfloat16 and give its bytes back as two-byte records."""
    return array.view(ml_dtypes.bfloat16) if array.dtype == np.dtype("V2") else array
