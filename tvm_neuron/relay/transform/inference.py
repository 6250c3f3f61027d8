"""Passes that make networks smaller for inference: SimplifyInference, FoldScaleAxis, CanonicalizeOps, SimplifyExpr."""

from typing import Any

import tvm

from tvm_neuron.relay.ir.expr import Call, Constant, Function, Op, TupleGetItem, const
from tvm_neuron.relay.ir.functor import ExprMutator, children, post_order
from tvm_neuron.relay.op import namespace
from tvm_neuron.relay.transform.constants import shape_of
from tvm_neuron.relay.transform.passes import function_pass_of

_OPS = namespace()


def is_call(expr: Any, *names: str) -> bool:
    """Whether `expr` calls one of these operators."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op.name) in names


def SimplifyInference() -> tvm.transform.Pass:  # noqa: N802 - Relay's name
    """Batch normalisation as a product and a sum, and no dropout."""
    return function_pass_of("SimplifyInference", lambda func, _mod: _Inference().visit(func))


class _Inference(ExprMutator):
    def visit_call(self, call: Call) -> Any:
        """The data itself for a dropout."""
        return self.visit(call.args[0]) if is_call(call, "nn.dropout") else super().visit_call(call)

    def visit_tuple_getitem(self, op: TupleGetItem) -> Any:
        """The result of a batch normalisation."""
        if is_call(op.tuple_value, "nn.batch_norm") and op.index == 0:
            call = op.tuple_value
            return _scaled(call, *(self.visit(arg) for arg in call.args))
        return super().visit_tuple_getitem(op)


def _scaled(call: Call, data: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
    attrs, ty = call.attrs, call.args[0].checked_type
    factor = const(1.0, ty.dtype) / _OPS["sqrt"](var + const(float(attrs.epsilon), ty.dtype))
    factor = factor * gamma if attrs.scale else factor
    shift = _OPS["negative"](mean) * factor
    shift = shift + beta if attrs.center else shift
    after = len(ty.shape) - 1 - int(attrs.axis) % len(ty.shape)
    return data * _wide(factor, after) + _wide(shift, after)


def _wide(vector: Any, after: int) -> Any:
    return _OPS["expand_dims"](vector, 1, after) if after else vector


def CanonicalizeOps() -> tvm.transform.Pass:  # noqa: N802
    """A bias as a sum."""
    return function_pass_of("CanonicalizeOps", lambda func, _mod: _Canonical().visit(func), opt_level=3)


class _Canonical(ExprMutator):
    def visit_call(self, call: Call) -> Any:
        """The sum of the data and the bias, with dimensions of one after it."""
        if not is_call(call, "nn.bias_add"):
            return super().visit_call(call)
        rank = len(call.args[0].checked_type.shape)
        data, bias = (self.visit(arg) for arg in call.args)
        return data + _wide(bias, rank - 1 - int(call.attrs.axis) % rank)


def FoldScaleAxis() -> tvm.transform.Pass:  # noqa: N802
    """A product with a number a channel, after a convolution or a dense layer, goes into its weight."""
    return function_pass_of("FoldScaleAxis", lambda func, _mod: _Scales(func).visit(func), opt_level=3)


BackwardFoldScaleAxis = FoldScaleAxis


class _Scales(ExprMutator):
    def __init__(self, func: Function) -> None:
        super().__init__()
        self._readers: dict[Any, int] = {}
        for node in post_order(func):
            for child in children(node):
                self._readers[child] = self._readers.get(child, 0) + 1

    def visit_call(self, call: Call) -> Any:
        """The layer with the scaled weight, for a product of one that nothing else reads."""
        if is_call(call, "multiply"):
            for layer, scale in (call.args, reversed(call.args)):
                rank = len(call.checked_type.shape)
                if is_call(layer, "nn.conv2d", "nn.dense") and self._readers[layer] == 1 and layer.ty == call.ty:
                    factor = _factor(layer, scale, rank)
                    if factor is not None:
                        data, weight = (self.visit(arg) for arg in layer.args)
                        return Call(layer.op, [data, weight * factor], layer.attrs, layer.type_args, layer.span)
        return super().visit_call(call)


def _factor(layer: Call, scale: Any, rank: int) -> Any:
    """What to multiply the weight by, if `scale` is a constant with one number for each output channel, or one."""
    is_dense = is_call(layer, "nn.dense")
    at = rank - 1 if is_dense else str(layer.attrs.out_layout or layer.attrs.data_layout).find("C")
    weight, sizes = shape_of(layer.args[1]), shape_of(scale)
    if weight is None or sizes is None or not isinstance(_source(scale), Constant):
        return None
    sizes = (1,) * (rank - len(sizes)) + sizes
    if any(size != 1 for axis, size in enumerate(sizes) if axis != at):
        return None
    letters = "OI" if is_dense else str(layer.attrs.kernel_layout)
    if not is_dense and (sorted(letters) != sorted("OIHW") or letters == "HWOI"):
        return None
    wanted = [sizes[at] if letter == "O" else 1 for letter in letters]
    return _OPS["reshape"](scale, wanted)


def _source(expr: Any) -> Any:
    """What a chain of operators of one operand begins with."""
    while isinstance(expr, Call) and len(expr.args) == 1:
        expr = expr.args[0]
    return expr


def SimplifyExpr() -> tvm.transform.Pass:  # noqa: N802
    """Sums of constants joined, and no reshapes, transposes and casts that do nothing or undo each other."""
    return function_pass_of("SimplifyExpr", lambda func, _mod: _Simpler().visit(func))


class _Simpler(ExprMutator):
    def visit_call(self, call: Call) -> Any:
        """The call, or less."""
        new: Any = super().visit_call(call)
        if is_call(new, "reshape", "squeeze", "expand_dims") and call.ty == call.args[0].ty:
            return new.args[0]
        if is_call(new, "cast") and call.ty == call.args[0].ty:
            return new.args[0]
        inner: Any = new.args[0] if new.args else None
        if is_call(new, "reshape") and is_call(inner, "reshape") and (shape := shape_of(call)) is not None:
            return _OPS["reshape"](inner.args[0], shape)
        if is_call(new, "transpose") and is_call(inner, "transpose"):
            return _joined(new, inner, len(call.ty.shape))
        if is_call(new, "add") and is_call(inner, "add") and all(isinstance(e.args[1], Constant) for e in (new, inner)):
            return inner.args[0] + (inner.args[1] + new.args[1])
        return new


def _joined(outer: Call, inner: Call, rank: int) -> Any:
    first, second = ([int(a) % rank for a in call.attrs.axes or range(rank)[::-1]] for call in (inner, outer))
    axes = [first[axis] for axis in second]
    return inner.args[0] if axes == list(range(rank)) else _OPS["transpose"](inner.args[0], axes)
