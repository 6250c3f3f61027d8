"""native: the C++ library of this room."""

import ctypes
from functools import cache
from pathlib import Path

_INTERFACE = 4  # of the functions below, as in native.cc; counts up when one changes
_LIBRARY = Path(__file__).parent / "libneuron_native.so"
_SIZE, _PLACE, _INT = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int
_SIGNATURES = {
    "tvm_neuron_assign": (_PLACE, _INT, _INT) * 2 + (_PLACE,),
    "tvm_neuron_replay": (_PLACE, _SIZE, _PLACE),
    "tvm_neuron_chain": (_PLACE, _PLACE, _INT, _PLACE, _INT, _PLACE),
    "tvm_neuron_add_products": (
        *(_PLACE, _PLACE, *[_SIZE] * 4, _INT, _PLACE),
        *(_PLACE, _PLACE, _SIZE) * 2,
        _INT,
    ),
}


@cache
def native() -> ctypes.CDLL | None:
    """The library, or None where it was not built, or from other sources than these.

    The interpreter runs other threads during its functions.
    """
    library = ctypes.CDLL(str(_LIBRARY)) if _LIBRARY.exists() else None
    interface = getattr(library, "tvm_neuron_native_interface", None)
    if library is None or interface is None or interface() != _INTERFACE:
        return None
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, _INT
    return library
