"""Operators of training in their inference form: batch norm is a multiplication and an addition, dropout nothing.

(TVM's own decomposition of batch norm leaves four operations on the activation, and keeps dropout.) A batch norm whose
`training` is on, Relax's default, is normalised by the batch's own mean and variance.
"""

from tvm import relax

from tvm_neuron.frontend.decompose.emitter import Emitter, Expansion


def _batch_norm(call: relax.Call, block: Emitter) -> relax.Tuple:
    """y = x * scale + shift, with scale = gamma / sqrt(var + epsilon) and shift = beta - mean * scale.

    `scale` and `shift` are calls on constants, which fold at compile time.
    """
    data, gamma, beta, mean, variance = call.args
    axis = int(call.attrs.axis) % len(data.ty.shape)
    per_channel = [dim if i == axis else 1 for i, dim in enumerate(data.ty.shape)]
    moved = [mean, variance]

    def scalar(value: float) -> relax.Expr:
        return relax.const(value, variance.ty.dtype)

    if call.attrs.training:
        others = [i for i in range(len(per_channel)) if i != axis]
        new = [block.emit(statistic(data, others)) for statistic in (relax.op.mean, relax.op.variance)]
        kept, share = scalar(1 - call.attrs.momentum), scalar(call.attrs.momentum)
        moved = [
            block.emit(
                relax.op.add(block.emit(relax.op.multiply(old, kept)), block.emit(relax.op.multiply(batch, share)))
            )
            for old, batch in zip(moved, new, strict=True)
        ]
        mean, variance = new
    scale = block.emit(relax.op.rsqrt(block.emit(relax.op.add(variance, scalar(call.attrs.epsilon)))))
    if call.attrs.scale:
        scale = block.emit(relax.op.multiply(scale, gamma))
    shift = block.emit(relax.op.multiply(mean, scale))
    shift = block.emit(relax.op.subtract(beta if call.attrs.center else scalar(0.0), shift))
    scaled = block.emit(relax.op.multiply(data, block.emit(relax.op.reshape(scale, per_channel))))
    result = block.emit(relax.op.add(scaled, block.emit(relax.op.reshape(shift, per_channel))))
    return relax.Tuple([result, *moved])


def _dropout(call: relax.Call, block: Emitter) -> relax.Tuple:
    """y = x; the mask, which hardly anything reads, keeps everything."""
    return relax.Tuple([call.args[0], block.emit(relax.op.ones_like(call.args[0]))])


EXPANSIONS: dict[str, Expansion] = {"relax.nn.batch_norm": _batch_norm, "relax.nn.dropout": _dropout}
