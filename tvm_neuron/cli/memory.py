"""How a command handles memory: what is freed goes back to the system; nothing is looked through at its end."""

import atexit
import ctypes
import gc
import sys

_M_MMAP_THRESHOLD = -3  # of malloc.h
_LARGE_BYTES = 256 * 1024


def return_freed_memory() -> None:
    """Blocks of weights are mapped one by one from now on.

    glibc raises the size from which it does that (to 32 MB) whenever such a block is freed; later ones then lie on a
    heap whose end rarely becomes free. On BERT-base that is a quarter of the most memory that a compile takes.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def end_quickly() -> None:
    """When the process ends, Python doesn't look for cycles among all that imports made, which takes 0.3 s."""
    atexit.unregister(gc.freeze)  # of an earlier command of this process
    atexit.register(gc.freeze)
