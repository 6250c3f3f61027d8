"""Kernels written by hand, as calls of a module: an operator whose attribute names one of `KERNELS`.

What is in `KERNELS` says which results a kernel gives, and makes a program of it. `tvm_neuron.nki` puts it there.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import tvm
from numpy.typing import NDArray
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.decompose.shapes import static_shape
from tvm_neuron.frontend.own_operators import register
from tvm_neuron.neff import Neff
from tvm_neuron.runtime.tensors import as_numpy

BY_HAND = "relax.neuron.nki"
KERNEL_DOMAIN = "tvm_neuron.nki"
"""Of ONNX nodes whose type names a kernel."""

_NAME = "name"

Operand = tuple[tuple[int, ...], str] | NDArray[Any]
"""A shape and dtype, or the value of a constant."""


class ByHand(Protocol):
    """A kernel that can be part of a model."""

    def results(self, operands: Sequence[Operand]) -> list[tuple[tuple[int, ...], str]]:
        """Shape and dtype of each result."""

    def neff(self, symbol: str, chip: str, operands: Mapping[str, Operand], results: Sequence[str]) -> Neff:
        """The program, with tensors of these names."""

    @property
    def instead_of(self) -> Callable[..., relax.Expr] | None:
        """Makes of its operands what the compiler would have in its place, if anybody told."""


KERNELS: dict[str, ByHand] = {}
"""By the name that calls have."""


def call_by_hand(name: str, operands: Sequence[relax.Expr]) -> relax.Call:
    """A call of the kernel `name`.

    Raises:
        ModelError: there is no such kernel, or an operand is no tensor of a static shape.
    """
    if name not in KERNELS:
        known = ", ".join(KERNELS) or "none"
        raise ModelError(f"no kernel '{name}' is registered; there are: {known}. tvm_neuron.nki.register(name, kernel)")
    given = []
    for at, operand in enumerate(operands):
        shape = static_shape(operand)
        if shape is None:
            raise ModelError(f"operand {at} of kernel '{name}' is {operand.ty}; it must be a tensor of a static shape")
        given.append((shape, str(operand.ty.dtype)))
    types = [relax.TensorType(shape, dtype) for shape, dtype in KERNELS[name].results(given)]
    ty = types[0] if len(types) == 1 else relax.TupleType(types)
    attrs = tvm.ir.make_node("ir.DictAttrs", **{_NAME: name})
    return relax.Call(tvm.ir.Op.get(BY_HAND), list(operands), attrs, [ty], ret_ty=ty)


def kernel_name(expr: relax.Expr) -> str:
    """The kernel that a call names; "" of any other expression."""
    is_one = isinstance(expr, relax.Call) and expr.op == tvm.ir.Op.get(BY_HAND)
    return str(expr.attrs[_NAME]) if is_one else ""


def compiled_instead(call: relax.Call) -> relax.Function | None:
    """What the compiler would have in the kernel's place, as a function of its operands, if anybody told."""
    instead_of = KERNELS[kernel_name(call)].instead_of
    if instead_of is None:
        return None
    builder = relax.BlockBuilder()
    params = [relax.Var(f"arg{at}", operand.ty) for at, operand in enumerate(call.args)]
    with builder.function("main", params):
        with builder.dataflow():
            output = builder.emit_output(instead_of(*params))
        builder.emit_func_output(output)
    return builder.get()["main"]


def constant_of(operand: relax.Expr) -> NDArray[Any] | None:
    """The value of a constant operand."""
    return as_numpy(operand.value) if isinstance(operand, tvm.ir.GenericConst) else None


register(BY_HAND, "A kernel written by hand: attribute `name`, operands as it takes them")
