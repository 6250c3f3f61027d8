"""open_store: where the cache lies and how large it may become, from an option or the environment."""

import os
from collections.abc import Callable
from pathlib import Path

from tvm_neuron.cache.store import Store
from tvm_neuron.errors import OptionError

OFF = "off"
LIMIT_MB = 4096


def open_store(given: str | None, on_trouble: Callable[[str], None]) -> Store | None:
    """The store in the folder `given`, of NEURON_CC_CACHE or in the user's cache; None if that says `off`.

    NEURON_CC_CACHE_MB is the most that all entries may take (4096). `on_trouble` is told what is wrong with the cache:
    it never makes a build fail.

    Raises:
        OptionError: NEURON_CC_CACHE_MB is no number.
    """
    where = given or os.environ.get("NEURON_CC_CACHE") or str(_users() / "tvm_neuron")
    if where == OFF:
        return None
    limit = os.environ.get("NEURON_CC_CACHE_MB") or str(LIMIT_MB)
    if not limit.isdecimal():
        raise OptionError(f"NEURON_CC_CACHE_MB is '{limit}'; it must be a number of megabytes, such as {LIMIT_MB}")
    return Store(Path(where).expanduser(), int(limit) * 10**6, on_trouble)


def _users() -> Path:
    """The folder for caches by the XDG base directory specification, which has relative paths ignored."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return given if given.is_absolute() else Path("~/.cache")
