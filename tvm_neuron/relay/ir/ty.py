"""Relay's types: of tensors, tuples and functions. Two are equal where their parts are."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import tvm
import tvm_ffi
from tvm.ir import Type
from tvm_ffi.dataclasses import py_class

Dim: TypeAlias = Any
"""A whole number, or an expression of TVM."""


class _Compared:
    """Equality by structure, as Relay's types had it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and bool(tvm_ffi.structural_equal(self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return int(tvm_ffi.structural_hash(self))

    def __str__(self) -> str:
        return type_text(self)


@py_class("relay.TensorType")
class TensorType(_Compared, Type):
    """A tensor of `shape` (numbers, TVM's expressions, `Any()`) and `dtype`; `int`, `uint` and `float` are of 32 bits.

    Raises TypeError: a dimension is neither a whole number nor an expression.
    """

    shape: list[Any]
    dtype: str

    def __init__(self, shape: Sequence[Dim] | Dim, dtype: Any = "float32") -> None:
        listed = [shape] if isinstance(shape, int | tvm.ir.Expr) else shape
        self.__ffi_init__([_dim(dim) for dim in listed], full_dtype(str(dtype)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorType) or self.dtype != other.dtype or len(self.shape) != len(other.shape):
            return False
        return all(_is_same(*pair) for pair in zip(self.shape, other.shape, strict=True))

    def __hash__(self) -> int:
        return hash((len(self.shape), str(self.dtype)))  # equal dimensions may be written in two ways

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape as numbers.

        Raises TypeError: a dimension is not known.
        """
        if not all(isinstance(dim, int) for dim in self.shape):
            raise TypeError(f"the shape {[str(dim) for dim in self.shape]} is not known in all dimensions")
        return tuple(self.shape)


@py_class("relay.TupleType")
class TupleType(_Compared, Type):
    """A tuple of values of these types."""

    fields: list[Any]

    def __init__(self, fields: Sequence[Type]) -> None:
        self.__ffi_init__(list(fields))


@py_class("relay.FuncType")
class FuncType(_Compared, Type):
    """A function from values of `arg_types` to one of `ret_type`."""

    arg_types: list[Any]
    ret_type: Any

    def __init__(self, arg_types: Sequence[Type], ret_type: Type) -> None:
        self.__ffi_init__(list(arg_types), ret_type)


@py_class("relay.IncompleteType")
class IncompleteType(Type):
    """A type that is to be found."""

    def __init__(self, kind: Any = None) -> None:
        del kind  # there are types of values alone
        self.__ffi_init__()


@py_class("relay.Any")
class AnyDim(tvm.ir.Expr):
    """A dimension of which nothing is known until the model runs."""

    def __init__(self) -> None:
        self.__ffi_init__()

    def __str__(self) -> str:
        return "?"


def scalar_type(dtype: str) -> TensorType:
    """The type of a tensor without dimensions."""
    return TensorType((), dtype)


def full_dtype(name: str) -> str:
    """A dtype with its bits: Relay's names without any have 32."""
    return f"{name}32" if name in ("int", "uint", "float") else name


def is_known(ty: object) -> bool:
    """Whether `ty` is a type of Relay, not the absence of one."""
    return isinstance(ty, TensorType | TupleType | FuncType)


def type_text(ty: Any) -> str:
    """A type as Relay printed it: `Tensor[(1, 3), float32]`."""
    if isinstance(ty, TensorType):
        shape = ", ".join(map(str, ty.shape)) + ("," if len(ty.shape) == 1 else "")
        return f"Tensor[({shape}), {ty.dtype}]" if ty.shape else str(ty.dtype)
    if isinstance(ty, TupleType):
        fields = ", ".join(map(type_text, ty.fields)) + ("," if len(ty.fields) == 1 else "")
        return f"({fields})"
    if isinstance(ty, FuncType):
        return f"fn ({', '.join(map(type_text, ty.arg_types))}) -> {type_text(ty.ret_type)}"
    return "?"


def _is_same(one: Any, other: Any) -> bool:
    """Whether two dimensions are equal whatever the variables in them stand for."""
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    if isinstance(one, AnyDim) or isinstance(other, AnyDim):
        return isinstance(one, AnyDim) and isinstance(other, AnyDim)
    return bool(tvm.sym.Analyzer().can_prove_equal(one, other))


def _dim(dim: Any) -> Any:
    if isinstance(dim, tvm.tirx.IntImm):
        return int(dim)
    if isinstance(dim, tvm.ir.Expr):
        return dim
    if isinstance(dim, str | float | bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"a dimension is a whole number or an expression of TVM, not {dim!r}")
    return dim.__index__()
