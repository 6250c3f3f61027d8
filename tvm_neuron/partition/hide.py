"""What stays on the CPU, out of sight while the subgraphs are made.

`FuseOpsByPattern` and `MergeCompositeFunctions` need only know which values such a binding reads, and break on many
things it may hold: MatchCast, functions of the model's own, packed functions.
"""

from dataclasses import dataclass, field

import tvm
from tvm import relax

from tvm_neuron.frontend.origin import rewrite_bindings
from tvm_neuron.partition.plan import Plan
from tvm_neuron.partition.substitute import substitute, used_vars

_OPERATOR = "relax.invoke_pure_closure"  # takes any operands, and has the type it is told
_INDEX = "neuron.hidden"


@dataclass
class Hidden:
    """The bindings that are hidden, by the number that their stand-ins carry, and which MatchCast binds which size."""

    bindings: list[relax.Binding] = field(default_factory=list)
    makers: dict[tvm.tirx.Var, relax.Var] = field(default_factory=dict)

    def hide(self, func: relax.Function, plan: Plan) -> relax.Function:
        """Write every call that `plan` leaves off the NeuronCore, and every MatchCast, as one of the same operands."""

        def stand_in(binding: relax.Binding) -> relax.Binding:
            is_call = isinstance(binding.value, relax.Call) and not plan.is_on_neuroncore(binding.var)
            if not is_call and not isinstance(binding, relax.MatchCast):
                return binding
            attrs = tvm.ir.make_node("ir.DictAttrs", **{_INDEX: len(self.bindings)})
            self.bindings.append(binding)
            operands = relax.Tuple([*used_vars(binding.value), *self._makers_of_sizes(binding.value)])
            if isinstance(binding, relax.MatchCast):
                self.makers.update(dict.fromkeys(_sizes_in(binding.ty.shape), binding.var))
            ty = binding.var.ty
            call = relax.Call(tvm.ir.Op.get(_OPERATOR), [operands], attrs, [ty], ret_ty=ty)
            return relax.VarBinding(binding.var, call)

        return rewrite_bindings(func, stand_in)

    def _makers_of_sizes(self, value: relax.Expr) -> list[relax.Var]:
        """The MatchCasts that bind the sizes in the shapes that `value` takes: unread as tensors, they must stay."""
        shapes = [arg for arg in getattr(value, "args", ()) if isinstance(arg, relax.ShapeExpr)]
        return [self.makers[size] for shape in shapes for size in _sizes_in(shape) if size in self.makers]

    def show(self, func: relax.Function) -> relax.Function:
        """The inverse of `hide`, with the operands that the stand-ins have now."""

        def original(binding: relax.Binding) -> relax.Binding:
            call = binding.value
            if not isinstance(call, relax.Call) or not call.attrs or call.attrs.get(_INDEX) is None:
                return binding
            hidden = self.bindings[int(call.attrs[_INDEX])]
            used = used_vars(hidden.value)
            value = substitute(hidden.value, dict(zip(used, call.args[0].fields[: len(used)], strict=True)))
            if isinstance(hidden, relax.MatchCast):
                return relax.MatchCast(binding.var, value, hidden.ty)
            return relax.VarBinding(binding.var, value)

        return rewrite_bindings(func, original)


def _sizes_in(shape: relax.Expr | None) -> list[tvm.tirx.Var]:
    """The sizes known at run time only that a shape is made of."""
    dims = shape if isinstance(shape, relax.ShapeExpr) else ()
    return [size for dim in dims for size in tvm.tirx.analysis.undefined_vars(dim)]
