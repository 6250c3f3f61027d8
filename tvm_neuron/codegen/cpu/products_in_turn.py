"""Loops that TVM can't make vectors of, turn by turn: its VectorizeLoop goes through some products twice.

What it has no vectors for, as rounding and NaN, becomes another expression without any vectors in it; a product of such
a one is gone through again, and a name in it, defined twice then, is refused. No other operation is.
"""

from typing import Any

import tvm_ffi
from tvm import ir, tirx

from tvm_neuron.codegen.cpu.kernel_pass import kernel_pass


def _in_turn(loop: tirx.For) -> tirx.For:
    if loop.kind != tirx.ForKind.VECTORIZED or not any(map(_is_gone_through_twice, _inside(loop.body, tirx.Mul))):
        return loop
    serial = tirx.ForKind.SERIAL
    return tirx.For(loop.loop_var, loop.min, loop.extent, serial, loop.body, annotations=loop.annotations)


def _is_gone_through_twice(product: tirx.Mul) -> bool:
    return bool(_inside(product, tirx.Let)) and not all(map(_has_vectors, _inside(product, ir.Call)))


def _has_vectors(call: ir.Call) -> bool:
    return isinstance(call.op, ir.Op) and (call.op.name in _OWN_WAY or bool(call.op.get_attr("TVectorizable")))


_OWN_WAY = ("tirx.reinterpret",)
"""What VectorizeLoop knows by name and leaves as it is where it holds no vectors."""


def _inside(node: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    tvm_ffi.structural_walk(node, (kind, found.append))
    return found


products_in_turn = kernel_pass("ProductsInTurn", lambda func: tvm_ffi.structural_map(func, (tirx.For, _in_turn)))
"""Ordinary loops instead of vectors around products of names and of calls without vectors."""
