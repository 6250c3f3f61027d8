"""How a compile handles memory: what is freed goes back to the system; Python seldom looks for cycles."""

import atexit
import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_M_MMAP_THRESHOLD = -3  # of malloc.h
_LARGE_BYTES = 256 * 1024
_NEW_OBJECTS = 100_000  # after which Python looks for cycles among them; it would after 700


def return_freed_memory() -> None:
    """Blocks of weights are mapped one by one from now on.

    glibc raises the size from which it does that (to 32 MB) whenever such a block is freed; later ones then lie on a
    heap whose end rarely becomes free. On BERT-base that is a quarter of the most memory that a compile takes.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Inside, Python seldom looks for cycles, and never among what there is already: all that imports made.

    A compile makes few cycles, and weights are in none; looking for them takes a tenth of its time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def end_quickly() -> None:
    """When the process ends, Python doesn't look for cycles among all that imports made, which takes 0.3 s."""
    atexit.unregister(gc.freeze)  # of an earlier command of this process
    atexit.register(gc.freeze)
