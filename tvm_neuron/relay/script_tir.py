"""`tvm.script.tir`: TVMScript as TVM 0.18 wrote it, in which every function has blocks, called `T.block`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from tvm.script import tirx

globals().update({name: value for name, value in vars(tirx).items() if not name.startswith("__")})

block = tirx.sblock
parser: Any = import_module("tvm.tirx.script.parser.parser")  # whose package has another thing of this name
_find = parser.find_decorator_annotation


def prim_func(func: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """The decorator of functions; they have the blocks of `tirx.prim_func(s_tir=True)`."""
    with _has_blocks():
        made = tirx.prim_func(func, **kwargs)
    if func is not None:
        return made

    def decorate(function: Callable[..., Any]) -> Any:
        with _has_blocks():
            return made(function)

    decorate.dispatch_token = tirx.prim_func.dispatch_token  # type: ignore[attr-defined]
    return decorate


@contextmanager
def _has_blocks() -> Iterator[None]:
    """Inside, the parser takes functions for such with blocks: it looks for `s_tir` in the text of the decorator."""
    parser.find_decorator_annotation = lambda node, name, default=True: name == "s_tir" or _find(node, name, default)
    try:
        yield
    finally:
        parser.find_decorator_annotation = _find


prim_func.dispatch_token = tirx.prim_func.dispatch_token  # type: ignore[attr-defined]
