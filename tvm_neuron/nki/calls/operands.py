"""What calls ask of their operands, and the form that most of them have."""

from collections.abc import Sequence
from math import prod
from typing import Any

from tvm_neuron.nki.emission import Result
from tvm_neuron.nki.index import Mask
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import current
from tvm_neuron.nki.view import View


def on_chip(what: str, *views: Any) -> None:
    """Refuses operands that an engine does not reach."""
    for view in views:
        if not isinstance(view, View):
            raise wrong(f"{what} takes tiles, not {type(view).__name__}")
        if view.tensor.memory == "hbm":
            raise wrong(f"{what} of {view}, which lies in device memory; engines read SBUF and PSUM: load it first")


def one_in_sbuf(what: str, left: View, right: View) -> None:
    """Refuses two operands in PSUM."""
    if left.tensor.memory == right.tensor.memory == "psum":
        raise wrong(f"{what} of {left} and {right}, both in PSUM; it reads one port: copy one to SBUF first")


def common_shape(views: Sequence[View]) -> tuple[int, ...]:
    """The shape that the views broadcast to; that with the most axes where all have as many elements a partition."""
    rank = max(view.ndim for view in views)
    if any(view.ndim < rank for view in views) and len({(view.shape[0], view.elems) for view in views}) == 1:
        return next(view.shape for view in views if view.ndim == rank)
    shapes = [view.padded(rank).shape for view in views]
    return tuple(max(counts) for counts in zip(*shapes, strict=True))


def elementwise(build: Any, views: dict[str, View], dtype: str, **fixed: Any) -> Result:
    """An instruction that treats each element alike."""
    shape = common_shape(list(views.values()))
    views = {name: view.fitted(shape) if view.elems == prod(shape) else view for name, view in views.items()}

    def write(target: View, mask: Mask | None) -> None:
        current().emit(build, {"result": target.fitted(shape), **views}, mask, **fixed)

    return Result(shape, dtype, "sbuf", write)


def number(what: str, value: Any) -> float:
    """A number that a kernel gives.

    Raises:
        KernelError: it is something else.
    """
    try:
        if isinstance(value, str):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise wrong(f"{what} is {type(value).__name__} {str(value)[:40]!r}; it is a number or a tile") from None


def scalar(value: Any) -> Any:
    """A number, or a view [P, 1]."""
    if not isinstance(value, View):
        return number("a scalar operand", value)
    on_chip("a scalar operand", value)
    if prod(value.shape[1:]) != 1:
        raise wrong(f"{value} as a scalar operand; one is a number or [P, 1]")
    return value
