"""native: the C++ library of this room."""

import ctypes
import warnings
from functools import cache
from pathlib import Path

_INTERFACE = 6  # of the functions below, as in native.cc; counts up when one changes
_LIBRARY = Path(__file__).parent / "libneuron_native.so"
_SIZE, _PLACE, _INT = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int
_SIGNATURES = {
    "tvm_neuron_assign": (_PLACE, _INT, _INT) * 2 + (_PLACE,),
    "tvm_neuron_replay": (_PLACE, _SIZE, _PLACE),
    "tvm_neuron_chain": (_PLACE, _PLACE, _INT, _PLACE, _INT, _PLACE),
    "tvm_neuron_add_products": (
        *(_PLACE, *[_SIZE] * 4, _INT, _PLACE),
        *(_PLACE, _PLACE, _SIZE) * 2,
        _INT,
    ),
    "tvm_neuron_waits": (_INT, _SIZE, *[_PLACE] * 3, _SIZE, *[_PLACE] * 4, _SIZE, *[_PLACE] * 3),
    "tvm_neuron_clock": (_INT, *[_PLACE] * 8, _INT, _PLACE, _SIZE, _INT, *[_PLACE] * 4),
}


@cache
def native() -> ctypes.CDLL | None:
    """The library; None, with one warning, where it was not built, or from other sources than these.

    The interpreter runs other threads during its functions.
    """
    found = _load()
    if isinstance(found, ctypes.CDLL):
        return found
    warnings.warn(
        f"the compiler and the hardware model run without their C++ library, several times slower: {found}; build it "
        "with 'python setup.py build_ext --inplace', or install tvm_neuron again",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _load() -> ctypes.CDLL | str:
    """The library, or why it can't be used."""
    try:
        library = ctypes.CDLL(str(_LIBRARY))
    except OSError as error:
        return str(error)
    interface = getattr(library, "tvm_neuron_native_interface", None)
    if interface is None or interface() != _INTERFACE:
        return f"{_LIBRARY} was built from other sources"
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, _INT
    return library
