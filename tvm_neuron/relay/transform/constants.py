"""FoldConstant: what is computed from constants alone becomes one."""

from typing import Any

import tvm
from tvm import relax

from tvm_neuron.build import BuildOptions, build
from tvm_neuron.errors import RangeError
from tvm_neuron.relay.ir.expr import Call, Constant, Function, Op, Tuple, TupleGetItem
from tvm_neuron.relay.ir.functor import ExprMutator, children, post_order
from tvm_neuron.relay.ir.ty import TensorType, TupleType
from tvm_neuron.relay.lower import to_relax
from tvm_neuron.relay.modules import module_of
from tvm_neuron.relay.transform.passes import function_pass_of, is_external


def FoldConstant(fold_qnn: bool = False) -> tvm.transform.Pass:  # noqa: N802 - Relay's name
    """What is computed from constants alone is computed now, on this machine in the model's dtypes.

    `fold_qnn` changes nothing: operators of quantised tensors are folded as any other.
    """
    del fold_qnn
    return function_pass_of("FoldConstant", lambda func, _mod: folded(func), opt_level=2)


def FoldConstantExpr(expr: Any, mod: tvm.IRModule | None = None, fold_qnn: bool = False) -> Any:  # noqa: N802
    """The same of one expression."""
    del mod, fold_qnn
    return folded(expr)


def folded(expr: Any) -> Any:
    """`expr`, whose types are known, with every tensor that constants alone decide as a constant."""
    known = _known(expr)
    readers = [child for node in post_order(expr, _below) if node not in known for child in _below(node)]
    wanted = {node: _parts(node) for node in [*readers, expr] if node in known and not isinstance(node, Constant)}
    tensors = [part for parts in wanted.values() for part in _tensors(parts)]
    if not tensors:
        return expr
    try:
        results = dict(zip(tensors, evaluated(tensors), strict=True))
    except RangeError:  # which a run of the model tells
        return expr
    return _Replace({node: _constant(parts, results) for node, parts in wanted.items()}).visit(expr)


def _below(node: Any) -> list[Any]:
    return [] if isinstance(node, Function) and is_external(node) else children(node)


def _known(expr: Any) -> set[Any]:
    """The expressions that no variable is in; annotations stay, and so does what has no operands."""
    known: set[Any] = set()
    for node in post_order(expr, _below):
        is_computed = isinstance(node, Tuple | TupleGetItem) or (isinstance(node, Call) and _is_arithmetic(node.op))
        parts = children(node)
        if isinstance(node, Constant) or (is_computed and parts and all(child in known for child in parts)):
            known.add(node)
    return known


def _is_arithmetic(op: Any) -> bool:
    return isinstance(op, Op) and not op.name.startswith("annotation.")


def _parts(node: Any) -> Any:
    """A tensor itself, a tuple as the list of its parts."""
    if isinstance(node, Tuple):
        return [_parts(field) for field in node.fields]
    if isinstance(node.ty, TupleType):
        return [_parts(TupleGetItem(node, index, ty=ty)) for index, ty in enumerate(node.ty.fields)]
    return node


def _tensors(parts: Any) -> list[Any]:
    """What is to be computed of the parts of a value."""
    if isinstance(parts, list):
        return [tensor for part in parts for tensor in _tensors(part)]
    return [] if isinstance(parts, Constant) else [parts]


def _constant(parts: Any, results: dict[Any, Any]) -> Any:
    if isinstance(parts, list):
        return Tuple([_constant(part, results) for part in parts])
    return results.get(parts, parts)


def evaluated(exprs: list[Any]) -> list[Constant]:
    """Tensors that need no variables as constants, computed on the CPU."""
    mod = to_relax(module_of(Function([], Tuple(exprs))))
    with tvm.transform.PassContext():  # none of the user's instruments: they look for Relay
        executable = build(mod, None, BuildOptions())
    found = relax.VirtualMachine(executable, tvm.cpu())["main"]()
    return [Constant(value) for value in found]


class _Replace(ExprMutator):
    """Puts constants in place of what they are the values of."""

    def __init__(self, values: dict[Any, Any]) -> None:
        super().__init__()
        self.memo_map.update(values)

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        """The field itself, of a tuple that became known."""
        value = self.visit(op.tuple_value)
        return value[op.index] if isinstance(value, Tuple) else super().visit_tuple_getitem(op)


def is_scalar(expr: Any, value: float) -> bool:
    """Whether `expr` is a constant all of whose elements are `value`."""
    return isinstance(expr, Constant) and bool((expr.data.numpy() == value).all())


def shape_of(expr: Any) -> tuple[int, ...] | None:
    """The shape, where it is known in all dimensions."""
    ty = expr.ty
    if not isinstance(ty, TensorType) or not all(isinstance(dim, int) for dim in ty.shape):
        return None
    return tuple(ty.shape)

