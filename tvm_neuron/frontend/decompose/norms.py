"""Norms of groups of channels in the tensor's own dimensions, where sums of channels lie as they do; norms of float64.

Of groups, TVM's kernel, and what torch exports, merge a group's channels with their positions, of which a core has one
row a group: one group of a network's first layer is a single row of 65,536 elements beside 127 idle partitions.
"""

from tvm import relax

from tvm_neuron.frontend.decompose.emitter import Emitter, Expansion


def _group_norm(call: relax.Call, block: Emitter) -> relax.Var | None:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta; the statistics in float32, as TVM's kernel has them."""
    given, gamma, beta = call.args
    at = int(call.attrs.channel_axis) % int(given.ty.ndim)
    axes = sorted(int(axis) % int(given.ty.ndim) for axis in call.attrs.axes)
    if axes != [axis for axis in range(1, int(given.ty.ndim)) if axis != at] or at == 0:
        return None
    dtype = str(given.ty.dtype)
    is_narrow = dtype in ("float16", "bfloat16")
    data = block.emit(relax.op.astype(given, "float32")) if is_narrow else given
    groups = int(call.attrs.num_groups)

    def mean(values: relax.Expr) -> relax.Expr:
        """Of each group, for each of its channels; channels have equally many positions."""
        found = block.emit(relax.op.mean(values, axes, keepdims=True)) if axes else values
        batch, channels = values.ty.shape[0], values.ty.shape[at]
        if groups == channels:
            return found
        apart = block.emit(relax.op.reshape(found, [batch, groups, channels // groups]))
        means = block.emit(relax.op.mean(apart, [2], keepdims=True))
        spread = block.emit(relax.op.broadcast_to(means, [batch, groups, channels // groups]))
        return block.emit(relax.op.reshape(spread, found.ty.shape))

    centred = block.emit(relax.op.subtract(data, mean(data)))
    variance = mean(block.emit(relax.op.multiply(centred, centred)))
    epsilon = relax.const(call.attrs.epsilon, data.ty.dtype)
    result = block.emit(
        relax.op.multiply(centred, block.emit(relax.op.rsqrt(block.emit(relax.op.add(variance, epsilon)))))
    )
    shape = [length if axis == at else 1 for axis, length in enumerate(data.ty.shape)]
    for is_wanted, combine, factors in (
        (call.attrs.scale, relax.op.multiply, gamma),
        (call.attrs.center, relax.op.add, beta),
    ):
        if is_wanted:
            wide = block.emit(relax.op.astype(factors, "float32")) if is_narrow else factors
            result = block.emit(combine(result, block.emit(relax.op.reshape(wide, shape))))
    return block.emit(relax.op.astype(result, dtype)) if is_narrow else result


def _of_float64(call: relax.Call, block: Emitter) -> relax.Var | None:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, for which TVM has kernels of narrower floats alone."""
    data, *factors = call.args
    dtype, axes = str(data.ty.dtype), list(call.attrs.axes)
    if dtype != "float64":
        return None
    if call.op.name == "relax.nn.instance_norm":
        at = int(call.attrs.channel_axis) % int(data.ty.ndim)
        shape = [length if axis == at else 1 for axis, length in enumerate(data.ty.shape)]
        factors = [block.emit(relax.op.reshape(factor, shape)) for factor in factors]

    def mean(values: relax.Expr) -> relax.Expr:
        return block.emit(relax.op.mean(values, axes, keepdims=True))

    centred = block.emit(relax.op.subtract(data, mean(data)))
    variance = mean(block.emit(relax.op.multiply(centred, centred)))
    spread = block.emit(relax.op.sqrt(block.emit(relax.op.add(variance, relax.const(call.attrs.epsilon, dtype)))))
    result = block.emit(relax.op.divide(centred, spread))
    if call.attrs.scale:
        result = block.emit(relax.op.multiply(result, factors[0]))
    return block.emit(relax.op.add(result, factors[1])) if call.attrs.center else result


EXPANSIONS: dict[str, Expansion] = {
    "relax.nn.group_norm": _group_norm,
    "relax.nn.instance_norm": _of_float64,
    "relax.nn.layer_norm": _of_float64,
}
