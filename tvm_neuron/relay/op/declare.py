"""How an operator is declared: once, by a function with the signature that its users call and what it becomes in Relax.

Parameters annotated `Tensor` are operands, `Tensors` a tuple of them; all others are attributes. Called by a user the
declared function makes a `Call`; the lowering calls the body itself, with Relax expressions for the operands.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.relay.ir.expr import Attrs, Call, Constant, Op, RelayExpr, Tuple, TupleWrapper, as_expr
from tvm_neuron.relay.ir.ty import TensorType, full_dtype


class _Typed:
    """Relax's operators, whose results have their types at once, so that bodies can ask for shapes."""

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._theirs, name)
        if isinstance(found, ModuleType):
            return _Typed(found)
        return lambda *args, **kwargs: relax.BlockBuilder.current().normalize(found(*args, **kwargs))


R = _Typed(relax.op)
"""`relax.op` for the bodies of operators."""


def fields(call: relax.Expr, count: int) -> list[relax.Expr]:
    """The results of a call that gives a tuple, which is computed once."""
    bb = relax.BlockBuilder.current()
    whole = bb.emit(call)
    return [bb.emit(relax.TupleGetItem(whole, index)) for index in range(count)]


Tensor: TypeAlias = relax.Expr
"""An operand: an expression of Relay to the user, of Relax to the body."""

OptionalTensor: TypeAlias = relax.Expr | None
Tensors: TypeAlias = Sequence[relax.Expr]

Types: TypeAlias = Sequence[TensorType | None]
Fill: TypeAlias = Callable[[Types, Mapping[str, Any]], Mapping[int, TensorType]]
"""The types of operands that have none, by position, from those that have and the attributes."""


COMPUTED = "computed"
"""The attribute of a call that names those of its attributes that are expressions: its last arguments, in order."""


Ranks: TypeAlias = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[int]]


def rank_of_data(args: Sequence[Any], attrs: Mapping[str, Any]) -> Sequence[int]:
    """As many dimensions as the first operand has."""
    del attrs
    return [int(args[0].ty.ndim)]


def axis_of(axis: int, rank: int) -> int:
    """The axis counted from the first.

    Raises ValueError: a tensor of `rank` dimensions has none of that number.
    """
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of a tensor of {rank} dimensions")
    return axis % rank


def ranked_by(name: str) -> Ranks:
    """As many dimensions as the attribute `name` has numbers."""

    def ranks(args: Sequence[Any], attrs: Mapping[str, Any]) -> Sequence[int]:
        del args
        sizes = attrs[name]
        return [len(sizes) if isinstance(sizes, list | tuple) else int(sizes.ty.shape[0])]

    return ranks


@dataclass(frozen=True)
class Operator:
    """A declared operator: `outputs` is how many values it gives as a tuple, or None for one value alone.

    Of attributes that are expressions the body gets those in `tensors` as operands, and the values of the others, which
    have to be known when it is compiled; those in `shapeless` do not change the type of the result. `ranks` are the
    numbers of dimensions of the results where their sizes are open, from the operands and attributes.
    """

    name: str
    family: str
    body: Callable[..., Any]
    operands: tuple[str, ...]
    variadic: bool
    attributes: Mapping[str, Any]
    outputs: Callable[[Mapping[str, Any]], int | None] | None
    fill: Fill | None
    tensors: tuple[str, ...]
    shapeless: tuple[str, ...]
    ranks: Ranks | None

    @property
    def summary(self) -> str:
        """The first line of the body's docstring."""
        return (self.body.__doc__ or "").splitlines()[0]

    def lower(self, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """What it becomes: an expression of Relax, or a list of them if it gives several."""
        operands = [list(args)] if self.variadic else args
        return self.body(**dict(zip(self.operands, operands, strict=False)), **attrs)


_WINDOWS = re.compile(r"([123])d(_transpose)?$")
_OF_WINDOWS = ("pool_size", "kernel_size", "strides", "dilation", "output_padding")
"""Operators with windows of so many spatial dimensions, and attributes of theirs that have a number for each."""

OPERATORS: dict[str, Operator] = {}
"""All operators by name."""

PUBLIC: dict[str, Callable[..., Any]] = {}
"""What users call, by the operator's name."""


def operator(
    name: str, *, outputs: int | Callable[[Mapping[str, Any]], int | None] | None = None, fill: Fill | None = None,
    tensors: tuple[str, ...] = (), shapeless: tuple[str, ...] = (), ranks: Ranks | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
    """Declares the decorated function as the operator `name` and gives what its users call."""

    def declare(body: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(body)
        kinds = {key: parameter.annotation for key, parameter in signature.parameters.items()}
        operands = tuple(key for key, kind in kinds.items() if kind in (Tensor, OptionalTensor, Tensors))
        count = (lambda _: outputs) if isinstance(outputs, int) else outputs
        declared = Operator(
            name, body.__module__, body, operands, Tensors in kinds.values(),
            {key: parameter.default for key, parameter in signature.parameters.items() if key not in operands},
            count, fill, tensors, shapeless, ranks,
        )  # fmt: skip
        assert name not in OPERATORS, name
        OPERATORS[name] = declared

        def build(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return _call(declared, bound.arguments)

        PUBLIC[name.replace(name.rpartition(".")[2], body.__name__.strip("_"))] = build
        build.__name__ = build.__qualname__ = body.__name__
        build.__doc__, build.__signature__ = body.__doc__, signature  # type: ignore[attr-defined]
        return build

    return declare


def _call(declared: Operator, arguments: Mapping[str, Any]) -> Any:
    given = [arguments[key] for key in declared.operands if arguments[key] is not None]
    like = next((arg for arg in given if isinstance(arg, RelayExpr)), None)
    operands = [as_expr(arg, like) for arg in given]
    values = {key: _plain(arguments[key]) for key in declared.attributes}
    computed = [key for key, value in values.items() if isinstance(value, RelayExpr)]
    attrs = {key: _attribute(declared.name, key, values[key]) for key in values if key not in computed}
    attrs |= {COMPUTED: tuple(computed)} if computed else {}
    call = Call(Op(declared.name), operands + [values[key] for key in computed], Attrs(attrs))
    count = declared.outputs(values | attrs) if declared.outputs is not None else None
    return call if count is None else TupleWrapper(call, count)


def _by_axis(key: str, value: Any, count: int) -> Any:
    """A size as Relay had it: one for each spatial dimension, padding before all of them and then after them."""
    if key not in (*_OF_WINDOWS, "padding") or not isinstance(value, int | tuple):
        return value
    sizes = (value,) if isinstance(value, int) else value
    sizes = sizes * count if len(sizes) == 1 else sizes
    return sizes * 2 if key == "padding" and len(sizes) == count else sizes


def _attribute(name: str, key: str, value: Any) -> Any:
    """A plain value as the attribute keeps it."""
    windows = _WINDOWS.search(name)
    value = _by_axis(key, value, int(windows[1])) if windows else value
    return full_dtype(value) if key.endswith("dtype") and isinstance(value, str) else value


def attributes(declared: Operator, attrs: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a call for the body, those that were computed among them."""
    given = {key: value for key, value in attrs.items() if key != COMPUTED}
    return given | {key: _attribute(declared.name, key, _plain(value)) for key, value in found.items()}


def _plain(value: Any) -> Any:
    """What was given for an attribute as plain values; an expression where constants do not tell it."""
    if isinstance(value, TupleWrapper):
        value = value.astuple()
    if isinstance(value, Constant):
        value = value.data.numpy()
    if isinstance(value, Tuple):
        fields = tuple(_plain(field) for field in value.fields)
        return value if any(isinstance(field, RelayExpr) for field in fields) else fields
    if isinstance(value, np.ndarray | np.generic | tvm.runtime.Tensor):
        value = (value.numpy() if isinstance(value, tvm.runtime.Tensor) else np.asarray(value)).tolist()
    if isinstance(value, tvm.tirx.IntImm | tvm.tirx.FloatImm):
        return value.value
    if isinstance(value, list | tuple | tvm.ir.Array):
        parts = tuple(_plain(part) for part in value)
        return as_expr(parts) if any(isinstance(part, RelayExpr) for part in parts) else parts
    return value
