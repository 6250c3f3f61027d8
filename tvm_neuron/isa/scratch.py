"""scratch: room for values that don't outlive one computation, kept by each thread.

Fresh memory of some megabytes comes from the operating system page by page, which takes as long as filling it.
"""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROOM = threading.local()
_LARGE_BYTES = 31 << 20


def scratch(name: str, elems: int) -> NDArray[np.float32]:
    """`elems` float32 that hold anything, until this thread asks for the room `name` again."""
    room: NDArray[Any] | None = getattr(_ROOM, name, None)
    if room is None or room.size < elems:
        room = np.empty(elems, np.float32)
        setattr(_ROOM, name, room)
        _ROOM.generation = generation() + 1
    return room[:elems]


def generation() -> int:
    """How often a room of this thread was made anew, and so lies elsewhere."""
    return getattr(_ROOM, "generation", 0)


def keep_freed_memory() -> None:
    """Has the C library keep what arrays of up to some megabytes leave behind for the next ones.

    glibc returns a block to the operating system unless a larger one was freed before (mallopt(3), M_MMAP_THRESHOLD),
    so one of the largest that count, of which no page is touched, is freed here.
    """
    np.empty(_LARGE_BYTES, np.uint8)
