"""Python's collector of cycles while a compile runs: it makes few, and looking for them takes a sixth of its time."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 100_000  # after which Python looks for cycles among them; it would after 700


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Inside, Python seldom looks for cycles, and never among what there is already: all that imports made.

    Weights are in no cycle. Where Python looks as seldom already, nothing changes, and what the caller froze stays so.
    """
    before = gc.get_threshold()
    if before[0] >= _NEW_OBJECTS:
        yield
        return
    is_frozen = gc.get_freeze_count() > 0  # Python can't unfreeze what was frozen last alone
    if not is_frozen:
        gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not is_frozen:
            gc.unfreeze()
