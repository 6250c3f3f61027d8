"""The nodes of Relay's expressions: values that never change, known to TVM's modules and passes as its own are."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm.ir import BaseFunc, GlobalVar
from tvm_ffi.dataclasses import field, py_class

from tvm_neuron.relay.ir.ty import IncompleteType, TensorType, full_dtype, is_known

_NARROWER = {"int64": "int32", "float64": "float32"}  # how Relay took Python's numbers, not NumPy's


MEANINGS: dict[str, Any] = {}
"""What users call, by the operator's name, which Python's operators on expressions mean, and `astext`.

`op` and `text.py` fill it: they are made of expressions, so expressions can't import them."""


class _Overloaded:
    """Python's operators on expressions"""

    def _binary(self, name: str, lhs: Any, rhs: Any) -> Any:
        return MEANINGS[name](as_expr(lhs, like=self), as_expr(rhs, like=self))

    def __add__(self, other: Any) -> Any:
        return self._binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._binary("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._binary("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._binary("divide", other, self)

    def __lt__(self, other: Any) -> Any:
        return self._binary("less", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._binary("greater", self, other)

    def __le__(self, other: Any) -> Any:
        return self._binary("less_equal", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._binary("greater_equal", self, other)

    def __neg__(self) -> Any:
        return MEANINGS["negative"](self)


class RelayExpr(_Overloaded):
    """What all expressions can do; `isinstance(x, relay.Expr)` holds for every node."""

    @property
    def checked_type(self) -> Any:
        """The type that `relay.transform.InferType` found.

        Raises ValueError: it did not run on this expression.
        """
        if not is_known(self.ty):  # type: ignore[attr-defined]
            raise ValueError("the type of this expression is not known yet: run relay.transform.InferType first")
        return self.ty  # type: ignore[attr-defined]

    def astype(self, dtype: str) -> Any:
        """A cast to `dtype`."""
        return MEANINGS["cast"](self, dtype)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The text of the expression, in Relay's syntax."""
        del show_meta_data, annotate
        return str(MEANINGS["astext"](self))

    def __call__(self, *args: Any) -> "Call":
        """A call of this function or variable."""
        return Call(self, [as_expr(arg) for arg in args])

    def __str__(self) -> str:
        return self.astext()

    def __repr__(self) -> str:
        return self.astext()


@py_class("relay.Attrs")
class Attrs(tvm.ir.Node):
    """The attributes of a call, by name: `attrs.axis` or `attrs["axis"]`."""

    values: dict[str, Any]

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__ffi_init__(dict(values))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.values:
            raise AttributeError(f"there is no attribute '{name}'; there are {', '.join(self.values) or 'none'}")
        return self.values[name]

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def keys(self) -> list[str]:
        """The attributes' names."""
        return list(self.values)

    def as_dict(self) -> dict[str, Any]:
        """The attributes, lists of TVM as tuples."""
        return {name: _plain(value) for name, value in self.values.items()}


@py_class("relay.Op")
class Op(tvm.ir.Node):
    """An operator by its name: `nn.conv2d`."""

    name: str

    def __init__(self, name: str) -> None:
        self.__ffi_init__(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and self.name == other.name

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return str(self.name)


tvm.ir.Op.register(Op)  # scripts ask so whether a call is of an operator


@py_class("relay.Var", structural_eq="var")
class Var(RelayExpr, tvm.ir.Expr):
    """A variable: a parameter, or what a `Let` binds. Without a type it gets one from what uses it."""

    name_hint: str = field(structural_eq="ignore")
    type_annotation: Any

    def __init__(self, name_hint: str, type_annotation: Any = None, span: Any = None) -> None:
        if isinstance(type_annotation, IncompleteType):
            type_annotation = None
        self.__ffi_init__(name_hint, type_annotation, span=span, **_typed(type_annotation))


@py_class("relay.Constant")
class Constant(RelayExpr, tvm.ir.Expr):
    """A tensor known at compile time."""

    data: Any

    def __init__(self, data: Any, span: Any = None) -> None:
        self.__ffi_init__(data, span=span, ty=TensorType(data.shape, data.dtype))


@py_class("relay.Tuple")
class Tuple(RelayExpr, tvm.ir.Expr):
    """Several values as one."""

    fields: list[Any]

    def __init__(self, fields: Sequence[Any], span: Any = None, ty: Any = None) -> None:
        self.__ffi_init__([as_expr(each) for each in fields], span=span, **_typed(ty))

    def __getitem__(self, index: int) -> Any:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fields)


@py_class("relay.TupleGetItem")
class TupleGetItem(RelayExpr, tvm.ir.Expr):
    """One value of a tuple."""

    tuple_value: Any
    index: int

    def __init__(self, tuple_value: Any, index: int, span: Any = None, ty: Any = None) -> None:
        self.__ffi_init__(as_expr(tuple_value), index, span=span, **_typed(ty))


@py_class("relay.Call")
class Call(RelayExpr, tvm.ir.Expr):
    """An operator or a function applied to values."""

    op: Any
    args: list[Any]
    attrs: Any
    type_args: list[Any] = field(structural_eq="ignore")

    def __init__(
        self, op: Any, args: Sequence[Any], attrs: Any = None, type_args: Sequence[Any] | None = None, span: Any = None,
        ty: Any = None,
    ) -> None:  # fmt: skip
        attrs = attrs if isinstance(attrs, Attrs) else Attrs(attrs or {})
        self.__ffi_init__(op, list(args), attrs, list(type_args or []), span=span, **_typed(ty))


@py_class("relay.Let")
class Let(RelayExpr, tvm.ir.Expr):
    """`body` with `var` standing for `value`."""

    var: Any = field(structural_eq="def")
    value: Any
    body: Any

    def __init__(self, variable: Var, value: Any, body: Any, span: Any = None, ty: Any = None) -> None:
        self.__ffi_init__(variable, value, body, span=span, **_typed(ty))


@py_class("relay.If")
class If(RelayExpr, tvm.ir.Expr):
    """One of two expressions, by a bool known when the model runs."""

    cond: Any
    true_branch: Any
    false_branch: Any

    def __init__(self, cond: Any, true_branch: Any, false_branch: Any, span: Any = None, ty: Any = None) -> None:
        self.__ffi_init__(cond, true_branch, false_branch, span=span, **_typed(ty))


@py_class("relay.Function")
class Function(RelayExpr, BaseFunc):
    """A function of variables; as `main` of a module it is a model."""

    params: list[Any] = field(structural_eq="def")
    body: Any
    ret_type: Any

    def __init__(
        self, params: Sequence[Var], body: Any, ret_type: Any = None, type_params: Any = None,
        attrs: Any = None, span: Any = None, ty: Any = None,
    ) -> None:  # fmt: skip
        del type_params  # there are no functions over types here
        values = dict(attrs.items()) if attrs is not None else {}
        self.__ffi_init__(
            tvm.ir.make_node("ir.DictAttrs", **values), list(params), as_expr(body), ret_type, span=span, **_typed(ty)
        )

    @property
    def type_params(self) -> tuple[Any, ...]:
        """None: there are no functions over types here."""
        return ()

    __call__ = RelayExpr.__call__


class TupleWrapper:
    """The results of an operator that gives several: they can be unpacked, indexed, and used as the tuple."""

    def __init__(self, tuple_value: Any, size: int) -> None:
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> Any:
        """The results as one value."""
        return self.tuple_value

    def astext(self) -> str:
        """The text of the expression, in Relay's syntax."""
        return str(self.tuple_value.astext())

    def __getitem__(self, index: int) -> TupleGetItem:
        if not -self.size <= index < self.size:
            raise IndexError(f"there are {self.size} results, none has number {index}")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[TupleGetItem]:
        return (self[index] for index in range(self.size))


def var(
    name_hint: str, type_annotation: Any = None, shape: Any = None, dtype: str = "float32", span: Any = None
) -> Var:
    """A variable of a type, or of a shape and dtype; with neither, what uses it decides.

    Raises ValueError: both a type and a shape are given.
    """
    if type_annotation is not None and shape is not None:
        raise ValueError(f"relay.var('{name_hint}'): give type_annotation or shape, not both")
    if shape is not None:
        type_annotation = TensorType(shape, dtype)
    elif isinstance(type_annotation, str):
        type_annotation = TensorType((), type_annotation)
    return Var(name_hint, type_annotation, span)


def const(value: Any, dtype: str | None = None, span: Any = None) -> Constant:
    """A constant; Python's whole numbers become int32 and its others float32, as Relay had it.

    Raises TypeError: it is no number, array or tensor.
    """
    dtype = full_dtype(dtype) if isinstance(dtype, str) else dtype
    if isinstance(value, tvm.runtime.Tensor):
        return Constant(value if dtype is None else tvm.runtime.tensor(value.numpy().astype(dtype)), span)
    array = np.array(value, dtype=dtype)
    if dtype is None and isinstance(value, bool | int | float | list | tuple):
        array = array.astype(_NARROWER.get(array.dtype.name, array.dtype))
    if array.dtype == object or array.dtype.kind in "US":
        raise TypeError(f"relay.const takes numbers, arrays and tensors of TVM, not {value!r}")
    return Constant(tvm.runtime.tensor(np.ascontiguousarray(array).reshape(array.shape)), span)


def as_expr(value: Any, like: Any = None) -> Any:
    """An expression from what stands where one may: a number or array becomes a constant, of the dtype of `like`.

    Raises TypeError: it is none of these.
    """
    if isinstance(value, RelayExpr | GlobalVar | Op):
        return value
    if isinstance(value, TupleWrapper):
        return value.astuple()
    if isinstance(value, list | tuple):
        return Tuple(value)
    if isinstance(value, bool | int | float | np.generic | np.ndarray | tvm.runtime.Tensor):
        known = getattr(like, "ty", None)
        return const(value, known.dtype if isinstance(known, TensorType) and np.ndim(value) == 0 else None)
    raise TypeError(f"an expression of Relay is wanted, got {type(value).__name__}: {value!r}")


def _typed(ty: Any) -> dict[str, Any]:
    return {"ty": ty} if ty is not None else {}


def _plain(value: Any) -> Any:
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        return value
    return tuple(_plain(part) for part in value)
