"""Emitter: collects the calls that replace one call; all of them carry its origin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tvm import relax

from tvm_neuron.frontend.origin import Origin, origin_of, with_origin


@dataclass
class Emitter:
    """Collects the bindings that replace one call; `made` are the values of all variables before."""

    replaced: relax.VarBinding
    made: Mapping[relax.Var, relax.Expr]
    bindings: list[relax.Binding] = field(default_factory=list)

    def emit(self, value: relax.Expr, origin: Origin | None = None) -> relax.Var:
        """Bind `value`; a call has the origin of the replaced one, if not another is told."""
        value = relax.BlockBuilder().normalize(value)
        origin = origin or origin_of(self.replaced.value)
        var = type(self.replaced.var)(f"{self.replaced.var.name}_{len(self.bindings)}", value.ty)
        if origin is not None and isinstance(value, relax.Call):
            value = with_origin(value, origin)
        self.bindings.append(relax.VarBinding(var, value))
        return var


Expansion = Callable[[relax.Call, Emitter], relax.Expr | None]
"""What a call becomes (a variable, or a tuple of them), or None for a form that stays as it is."""
