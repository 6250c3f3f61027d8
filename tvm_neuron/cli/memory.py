"""return_freed_memory: what a compile no longer needs goes back to the system, not to the C library's heap."""

import ctypes
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
