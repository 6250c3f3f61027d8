"""Operators of training in their inference form: batch norm is a multiplication and an addition, dropout nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tvm import relax

from tvm_neuron.frontend.origin import origin_of, with_blocks, with_origin


def decompose_for_inference(func: relax.Function) -> relax.Function:
    """Replace batch norms and dropouts; what replaces them carries their origin.

    (TVM's own decomposition of batch norm leaves four operations on the activation, and keeps dropout.)
    """
    blocks = []
    for block in func.body.blocks:
        bindings: list[relax.Binding] = []
        for binding in block.bindings:
            expand = _EXPANSIONS.get(getattr(getattr(getattr(binding, "value", None), "op", None), "name", ""))
            bindings += [binding] if expand is None else _expand(binding, expand)
        blocks.append(type(block)(bindings))
    return with_blocks(func, blocks)


@dataclass
class _Emitter:
    """Collects the bindings that replace one call."""

    replaced: relax.VarBinding
    bindings: list[relax.Binding] = field(default_factory=list)

    def emit(self, value: relax.Call) -> relax.Var:
        """Bind `value`, under the origin of the replaced call."""
        value = relax.BlockBuilder().normalize(value)
        origin = origin_of(self.replaced.value)
        var = type(self.replaced.var)(f"{self.replaced.var.name}_{len(self.bindings)}", value.ty)
        self.bindings.append(relax.VarBinding(var, with_origin(value, origin) if origin else value))
        return var


_Expansion = Callable[[relax.Call, _Emitter], relax.Tuple]


def _expand(binding: relax.VarBinding, expansion: _Expansion) -> list[relax.Binding]:
    emitter = _Emitter(binding)
    result = expansion(binding.value, emitter)
    return [*emitter.bindings, relax.VarBinding(binding.var, result)]


def _batch_norm(call: relax.Call, block: _Emitter) -> relax.Tuple:
    """y = x * scale + shift, with scale = gamma / sqrt(var + epsilon) and shift = beta - mean * scale.

    `scale` and `shift` are calls on constants, which fold at compile time.
    """
    data, gamma, beta, mean, variance = call.args
    axis = int(call.attrs.axis) % len(data.ty.shape)
    per_channel = [dim if i == axis else 1 for i, dim in enumerate(data.ty.shape)]

    def scalar(value: float) -> relax.Expr:
        return relax.const(value, variance.ty.dtype)

    scale = block.emit(relax.op.rsqrt(block.emit(relax.op.add(variance, scalar(call.attrs.epsilon)))))
    if call.attrs.scale:
        scale = block.emit(relax.op.multiply(scale, gamma))
    shift = block.emit(relax.op.multiply(mean, scale))
    shift = block.emit(relax.op.subtract(beta if call.attrs.center else scalar(0.0), shift))
    scaled = block.emit(relax.op.multiply(data, block.emit(relax.op.reshape(scale, per_channel))))
    result = block.emit(relax.op.add(scaled, block.emit(relax.op.reshape(shift, per_channel))))
    return relax.Tuple([result, mean, variance])


def _dropout(call: relax.Call, block: _Emitter) -> relax.Tuple:
    """y = x; the mask, which hardly anything reads, keeps everything."""
    return relax.Tuple([call.args[0], block.emit(relax.op.ones_like(call.args[0]))])


_EXPANSIONS: dict[str, _Expansion] = {"relax.nn.batch_norm": _batch_norm, "relax.nn.dropout": _dropout}
