"""Names for what a subgraph returns: the model's own where it returns an output of the model."""

from tvm import relax

from tvm_neuron.frontend.origin import OUTPUTS_ATTR, bindings_of

_Value = tuple[relax.Var, int | None]
"""A variable, or one field of a variable that holds a tuple."""


class OutputNames:
    """The names of the values of `main`: those it returns are named as in the model, others after their variable."""

    def __init__(self, main: relax.Function) -> None:
        self._bound = {binding.var: binding.value for binding in bindings_of(main)}
        self._fields: dict[_Value, relax.Var] = {}
        for var, value in self._bound.items():
            if isinstance(value, relax.TupleGetItem):
                self._fields.setdefault(self._resolve(value), var)
        self._outputs = dict(zip(self._returned(main), output_names(main), strict=True))

    def of_subgraph(self, var: relax.Var) -> list[str]:
        """One name for each tensor of `var`, which holds the result of a subgraph."""
        if not isinstance(var.ty, relax.TupleType):
            return [self._outputs.get((var, None), var.name)]
        return [self._name_of_field(var, index) for index in range(len(var.ty.fields))]

    def _name_of_field(self, var: relax.Var, index: int) -> str:
        if (var, index) in self._outputs:
            return self._outputs[var, index]
        field = self._fields.get((var, index))
        return field.name if field is not None else f"{var.name}_{index}"

    def _returned(self, main: relax.Function) -> list[_Value]:
        body = main.body.body
        while isinstance(body, relax.Var) and isinstance(self._bound.get(body), relax.Var | relax.Tuple):
            body = self._bound[body]
        if isinstance(body, relax.Tuple):
            return [self._resolve(value) for value in body.fields]
        if isinstance(body.ty, relax.TupleType):
            return [(body, index) for index in range(len(body.ty.fields))]
        return [self._resolve(body)]

    def _resolve(self, expr: relax.Expr) -> _Value:
        """The value behind aliases: `a = b`, `c = d[0]`."""
        if isinstance(expr, relax.Var) and isinstance(self._bound.get(expr), relax.Var | relax.TupleGetItem):
            return self._resolve(self._bound[expr])
        if isinstance(expr, relax.TupleGetItem):
            return self._resolve(expr.tuple_value)[0], expr.index
        return expr, None


def output_names(main: relax.Function) -> list[str]:
    """The model's names of its outputs; `output_<i>` for a module whose importer gave none."""
    count = len(main.ret_ty.fields) if isinstance(main.ret_ty, relax.TupleType) else 1
    if main.attrs and OUTPUTS_ATTR in main.attrs and len(main.attrs[OUTPUTS_ATTR]) == count:
        return [str(name) for name in main.attrs[OUTPUTS_ATTR]]
    return [f"output_{index}" for index in range(count)]
