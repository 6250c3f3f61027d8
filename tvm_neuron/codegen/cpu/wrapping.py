"""wrap_integers: sums, differences and products of integers that have too many bits keep the low ones, as elsewhere.

TVM and LLVM take it for granted that all bits are enough: in one kernel x * 2000000000 / 2000000000 was x. Here they
are computed in twice as many, and of 64 in steps of which none has more.
"""

from typing import Any

import tvm_ffi
from tvm import ir, tirx

from tvm_neuron.codegen.cpu.kernel_pass import kernel_pass

_HALF = 32
_LOW, _TOP = 2**32 - 1, 2**63


def _wrapped(store: tirx.BufferStore) -> tirx.BufferStore:
    value, dtype = store.value, str(store.value.ty)
    if dtype not in _BITS or not isinstance(value, tirx.Add | tirx.Sub | tirx.Mul):
        return store
    operands = (value.a, value.b)
    loads = [each for each in operands if isinstance(each, ir.TensorLoad)]
    is_data = loads and all(isinstance(each, ir.TensorLoad | tirx.IntImm) for each in operands)
    if not is_data or any(load.source.same_as(store.buffer) for load in loads):
        return store
    wrap = _of_64_bits if _BITS[dtype] == 64 else _in_more_bits
    return tirx.BufferStore(store.buffer, wrap(value, dtype), store.indices)


_BITS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}


def _in_more_bits(value: Any, dtype: str) -> Any:
    """As unsigned integers, of which TVM takes less for granted."""
    bits = _BITS[dtype]
    unsigned, wide = f"uint{bits}", f"uint{2 * bits}"
    one, other = (tirx.reinterpret(unsigned, each).astype(wide) for each in (value.a, value.b))
    if isinstance(value, tirx.Sub):
        one = one + tirx.const(2**bits, wide)  # a bit to take from
    low = type(value)(one, other) & tirx.const(2**bits - 1, wide)
    return tirx.reinterpret(dtype, low.astype(unsigned))


def _of_64_bits(value: Any, dtype: str) -> Any:
    one, other = (tirx.reinterpret("uint64", each) for each in (value.a, value.b))
    combine = {tirx.Add: _sum, tirx.Sub: _difference, tirx.Mul: _product}[type(value)]
    return tirx.reinterpret(dtype, combine(one, other))


def _number(value: int) -> Any:
    return tirx.const(value, "uint64")


def _sum(one: Any, other: Any) -> Any:
    """The highest bit is added by itself."""
    return ((one & _number(_TOP - 1)) + (other & _number(_TOP - 1))) ^ ((one ^ other) & _number(_TOP))


def _difference(one: Any, other: Any) -> Any:
    lower = (one | _number(_TOP)) - (other & _number(_TOP - 1))  # with a bit to take from
    return lower ^ ((one ^ other ^ _number(_TOP)) & _number(_TOP))


def _product(one: Any, other: Any) -> Any:
    """By halves; that of the high ones has no bit in the result."""
    high, low = one >> _number(_HALF), one & _number(_LOW)
    other_high, other_low = other >> _number(_HALF), other & _number(_LOW)
    across = (high * other_low & _number(_LOW)) + (low * other_high & _number(_LOW))
    return _sum(low * other_low, across << _number(_HALF))


wrap_integers = kernel_pass("WrapIntegers", lambda func: tvm_ffi.structural_map(func, (tirx.BufferStore, _wrapped)))
"""Sums, differences and products of integers wrap around; not those over axes."""
