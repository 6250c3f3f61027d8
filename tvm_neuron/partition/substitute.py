"""Variables inside an expression: which it reads, and reading others instead."""

from tvm import relax

Values = dict[relax.Var, relax.Expr]
"""What each variable stands for."""


def substitute(expr: relax.Expr, values: Values) -> relax.Expr:
    """`expr` with its variables replaced, keeping spans."""
    if isinstance(expr, relax.Var):
        return values.get(expr, expr)
    if isinstance(expr, relax.Tuple):
        return relax.BlockBuilder().normalize(relax.Tuple([substitute(value, values) for value in expr.fields]))
    if isinstance(expr, relax.TupleGetItem):
        source = substitute(expr.tuple_value, values)
        if isinstance(source, relax.Tuple):
            return source.fields[expr.index]
        return relax.BlockBuilder().normalize(relax.TupleGetItem(source, expr.index))
    if isinstance(expr, relax.Call):
        args = [substitute(arg, values) for arg in expr.args]
        return relax.Call(expr.op, args, expr.attrs, expr.ty_args, expr.span, ret_ty=expr.ty)
    return expr


def used_vars(expr: relax.Expr) -> list[relax.Var]:
    """The variables that `expr` reads, from left to right, as often as it reads them."""
    if isinstance(expr, relax.Var):
        return [expr]
    children = expr.args if isinstance(expr, relax.Call) else expr.fields if isinstance(expr, relax.Tuple) else ()
    if isinstance(expr, relax.TupleGetItem):
        children = [expr.tuple_value]
    return [var for child in children for var in used_vars(child)]
