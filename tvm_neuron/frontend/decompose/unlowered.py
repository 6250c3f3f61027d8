"""Operators that Relax has and TVM's legalisation doesn't know, as those that it knows: pixel_shuffle, ewise_fma."""

from tvm import relax

from tvm_neuron.frontend.decompose.emitter import Emitter, Expansion


def _pixel_shuffle(call: relax.Call, block: Emitter) -> relax.Var:
    """[..., C * r * r, H, W] as [..., C, H * r, W * r]."""
    (data,), factor = call.args, int(call.attrs.upscale_factor)
    *front, channels, height, width = data.ty.shape
    at = len(front)
    apart = relax.op.reshape(data, [*front, channels // factor**2, factor, factor, height, width])
    order = [*range(at + 1), at + 3, at + 1, at + 4, at + 2]
    turned = block.emit(relax.op.permute_dims(block.emit(apart), order))
    return block.emit(relax.op.reshape(turned, [*front, channels // factor**2, height * factor, width * factor]))


def _fused_multiply_add(call: relax.Call, block: Emitter) -> relax.Var:
    left, right, addend = call.args
    return block.emit(relax.op.add(block.emit(relax.op.multiply(left, right)), addend))


EXPANSIONS: dict[str, Expansion] = {
    "relax.nn.pixel_shuffle": _pixel_shuffle,
    "relax.ewise_fma": _fused_multiply_add,
}
