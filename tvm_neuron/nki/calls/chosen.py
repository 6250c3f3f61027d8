"""Calls of which the operands decide the instruction: `x + y`, `where`, `loop_reduce`."""

from collections.abc import Sequence
from math import prod
from typing import Any

from tvm_neuron.isa import (
    Select,
)
from tvm_neuron.isa.dtypes import WORDS
from tvm_neuron.isa.functions import WHOLE
from tvm_neuron.nki.calls.operands import elementwise, on_chip
from tvm_neuron.nki.calls.pointwise import activation, memset, tensor_copy, tensor_scalar, tensor_tensor
from tvm_neuron.nki.dtypes import of_number, promoted
from tvm_neuron.nki.emission import Result
from tvm_neuron.nki.index import Mask
from tvm_neuron.nki.operators import ALU, named
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import current
from tvm_neuron.nki.view import View

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
LOGICAL = ("logical_and", "logical_or", "logical_xor")

_OF_TRUTH = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor"}  # of truth values


def binary(name: str, x: Any, y: Any) -> Result:
    """x op y of two tiles, or of a tile and a number: the instruction that fits."""
    if not isinstance(x, View) and not isinstance(y, View):
        raise wrong(f"{name} of two numbers; one operand is a tile")
    if {operand.tensor.dtype for operand in (x, y) if isinstance(operand, View)} == {"bool"}:
        name = _OF_TRUTH.get(name, name)
    dtype = _dtype_of(x, y) if name not in (*COMPARISONS, *LOGICAL) else "bool"
    dtype = "float32" if name == "divide" and "float" not in dtype else dtype
    if not isinstance(x, View) or not isinstance(y, View):
        data, number, is_reversed = (y, x, True) if isinstance(y, View) else (x, y, False)
        found = tensor_scalar(data, name, number, is_reversed)
    elif not _are_exact(name, x, y) and (_is_column(y, x) or _is_column(x, y)):
        data, column, is_reversed = (x, y, False) if _is_column(y, x) else (y, x, True)
        found = tensor_scalar(data, name, column, is_reversed)
    else:
        on_chip(name, x, y)
        if x.tensor.memory == y.tensor.memory == "psum":
            y = current().hold(tensor_copy(y))
            current().settle()
        found = tensor_tensor(x, y, name)
    return Result(found.shape, dtype, found.memory, found.write)


def _are_exact(name: str, x: View, y: View) -> bool:
    """Whether GpSimd computes with them as they are, which reads two tiles; a scalar operand is a float32."""
    return ALU.get(name) in WHOLE and {x.tensor.dtype, y.tensor.dtype} <= set(WORDS)


def _is_column(small: View, large: View) -> bool:
    column = small.padded(large.ndim).shape
    return column[:1] == large.shape[:1] and prod(column[1:]) == 1 < prod(large.shape[1:])


def _dtype_of(x: Any, y: Any) -> str:
    if isinstance(x, View) and isinstance(y, View):
        return promoted(x.tensor.dtype, y.tensor.dtype)
    return of_number(y, x.tensor.dtype) if isinstance(x, View) else of_number(x, y.tensor.dtype)


def inverted(x: Any) -> Result:
    """All bits of whole numbers turned around; of truth values the opposite."""
    on_chip("invert", x)
    if x.tensor.dtype == "bool":
        return binary("equal", x, 0.0)
    return binary("bitwise_xor", x, -1)


def unary(name: str, x: Any) -> Result:
    """A function of each element, on the Scalar engine."""
    return activation(name, x)


def select(condition: Any, x: Any, y: Any) -> Result:
    """x where condition is not 0, else y."""
    on_chip("where", condition)
    other = next((each.tensor.dtype for each in (x, y) if isinstance(each, View)), "float32")
    held = [each if isinstance(each, View) else _filled(condition, each, of_number(each, other)) for each in (x, y)]
    views = {"predicate": condition, "on_true": held[0], "on_false": held[1]}
    return elementwise(Select, views, promoted(held[0].tensor.dtype, held[1].tensor.dtype))


def _filled(like: View, value: Any, dtype: str) -> View:
    found = current().hold(memset(like.shape, value, dtype))
    current().settle()
    return found


def loop_reduce(x: Any, op: Any, loop_indices: Sequence[Any]) -> Result:
    """x where all loops are in their first iteration, later dst op x."""
    on_chip("loop_reduce", x)
    is_first = all(int(index) == getattr(index, "first", 0) for index in loop_indices)
    name = named(op, ALU, "loop_reduce")

    def write(target: View, mask: Mask | None) -> None:
        if is_first:
            tensor_copy(x).write(target, mask)
        else:
            tensor_tensor(target.fitted(x.shape), x, name).write(target, mask)

    return Result(x.shape, x.tensor.dtype, "sbuf", write)


def rounded(name: str, x: Any) -> View:
    """floor, ceil or trunc: what is left of x without its remainder by 1."""
    on_chip(name, x)
    trace = current()

    def made(result: Result) -> View:
        found = trace.tensor(result.shape, "float32", "sbuf")
        trace.do(result, found)
        return found

    if name == "ceil":
        return made(binary("multiply", rounded("floor", made(binary("multiply", x, -1.0))), -1.0))
    if name == "trunc":
        return made(binary("multiply", rounded("floor", made(unary("abs", x))), made(unary("sign", x))))
    return made(binary("subtract", x, made(binary("mod", x, 1.0))))
