"""native: the C++ library of this room."""

import ctypes
from functools import cache
from pathlib import Path

_LIBRARY = Path(__file__).parent / "libneuron_native.so"
_SIZE, _PLACE, _INT = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int
_SIGNATURES = {
    "tvm_neuron_assign": (_PLACE, _INT, _INT) * 2 + (_PLACE,),
    "tvm_neuron_add_products": (
        *(_PLACE, _PLACE, *[_SIZE] * 4, _INT, _PLACE),
        *(_PLACE, _PLACE, _SIZE) * 2,
        _INT,
    ),
}


@cache
def native() -> ctypes.CDLL | None:
    """The library, or None where it was not built; the interpreter runs other threads during its functions."""
    if not _LIBRARY.exists():
        return None
    library = ctypes.CDLL(str(_LIBRARY))
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, _INT
    return library
