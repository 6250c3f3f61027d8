"""What a user can choose about a build."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


def _ignore(_stage: str) -> None:
    """The default listener: nobody is told of stages."""


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """How to build. `device` is a chip's name (`neuron/inf1`) or the path of a device description.

    `must_compile` makes an operator on the CPU an error. `on_stage` is called with the name of each stage as it begins.
    """

    device: str = "neuron/inf1"
    must_compile: bool = False
    on_stage: Callable[[str], None] = _ignore

    def to_dict(self) -> dict[str, Any]:
        """The choices as plain values, as the manifest and the NEFF hold them."""
        return {"device": self.device, "must_compile": self.must_compile}


_current: ContextVar[BuildOptions | None] = ContextVar("tvm_neuron_build_options", default=None)


def current_options() -> BuildOptions | None:
    """The options of the innermost `build_options` block."""
    return _current.get()


@contextmanager
def build_options(options: BuildOptions) -> Iterator[None]:
    """Builds inside the `with` block use `options`; the way to give them to `tvm.compile`."""
    token = _current.set(options)
    try:
        yield
    finally:
        _current.reset(token)
