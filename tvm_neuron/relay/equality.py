"""Equality of expressions as `tvm.ir` had it: types that passes find do not count, nor do roundings of attributes."""

from typing import Any

import numpy as np
import tvm
import tvm_ffi

from tvm_neuron.relay.ir.expr import Attrs, Call, Function, If, Let, RelayExpr, Tuple, TupleGetItem
from tvm_neuron.relay.ir.functor import ExprMutator
from tvm_neuron.relay.modules import is_relay

_assert_equal = tvm.ir.assert_structural_equal


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two expressions, types or modules are built alike; variables from outside are themselves alone."""
    return bool(tvm_ffi.structural_equal(_bare(lhs), _bare(rhs), map_free_vars))


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A number that is the same for what is equal."""
    return int(tvm_ffi.structural_hash(_bare(node), map_free_vars))


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raises ValueError: they are not built alike; the message says where."""
    if not (_is_ours(lhs) or _is_ours(rhs)):
        _assert_equal(lhs, rhs, map_free_vars)
        return
    found = tvm_ffi.get_first_structural_mismatch(_bare(lhs), _bare(rhs), map_free_vars)
    if found is not None:
        raise ValueError(
            f"StructuralEqual check failed, caused by lhs at {found[0]}:\n{lhs}\nand rhs at {found[1]}:\n{rhs}"
        )


def _is_ours(node: Any) -> bool:
    return isinstance(node, RelayExpr) or (isinstance(node, tvm.IRModule) and is_relay(node))


def _bare(node: Any) -> Any:
    """The same without the types that were found."""
    if isinstance(node, tvm.IRModule) and is_relay(node):
        functions = node.functions_items()
        return tvm.IRModule({var: _bare(func) for var, func in functions}, attrs=node.attrs)
    return _Bare().visit(node) if isinstance(node, RelayExpr) else node


def _rounded(value: Any) -> Any:
    """An attribute as float32 has it: a number that a pass read from a constant was rounded to that."""
    if isinstance(value, tuple):
        return tuple(map(_rounded, value))
    return float(np.float32(value)) if isinstance(value, float) else value


class _Bare(ExprMutator):
    def visit_call(self, call: Call) -> Any:
        """The call without its type."""
        attrs = Attrs({name: _rounded(value) for name, value in call.attrs.as_dict().items()})
        return Call(self.visit(call.op), [self.visit(arg) for arg in call.args], attrs)

    def visit_tuple(self, tup: Tuple) -> Any:
        """The tuple without its type."""
        return Tuple([self.visit(field) for field in tup.fields])

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        """The field without its type."""
        return TupleGetItem(self.visit(op.tuple_value), op.index)

    def visit_let(self, let: Let) -> Any:
        """The binding without its type."""
        return Let(*(self._visit_from_below(part) for part in (let.var, let.value, let.body)))

    def visit_if(self, ite: If) -> Any:
        """The choice without its type."""
        return If(*(self.visit(part) for part in (ite.cond, ite.true_branch, ite.false_branch)))

    def visit_function(self, fn: Function) -> Any:
        """The function without its type, but with what was said of its result."""
        return Function(list(fn.params), self._visit_from_below(fn.body), fn.ret_type, attrs=fn.attrs)
