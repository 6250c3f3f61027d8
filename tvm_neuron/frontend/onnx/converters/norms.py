"""Activations and norms in the dtype of their operand; TVM's importer or the standard's bodies have some in float32."""

from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node


def _elu(node: Node) -> relax.Expr:
    """x above 0, alpha * (e^x - 1) below."""
    return _exponential(node, node.attrs.get("alpha", 1.0), 1.0)


def _celu(node: Node) -> relax.Expr:
    """max(0, x) + min(0, alpha * (e^(x / alpha) - 1))."""
    alpha = node.attrs.get("alpha", 1.0)
    return _exponential(node, alpha, alpha)


def _selu(node: Node) -> relax.Expr:
    """gamma * x above 0, gamma * alpha * (e^x - 1) below."""
    gamma = node.attrs.get("gamma", 1.05070102214813232421875)
    scaled = node.emit(_exponential(node, node.attrs.get("alpha", 1.67326319217681884765625), 1.0))
    return relax.op.multiply(scaled, relax.const(gamma, node.dtype()))


def _exponential(node: Node, alpha: float, divisor: float) -> relax.Expr:
    x, dtype = node.inputs[0], node.dtype()
    inner = x if divisor == 1.0 else node.emit(relax.op.divide(x, relax.const(divisor, dtype)))
    below = node.emit(relax.op.subtract(relax.const(1.0, dtype), node.emit(relax.op.exp(inner))))
    below = node.emit(relax.op.multiply(node.emit(relax.op.nn.relu(below)), relax.const(-alpha, dtype)))
    return relax.op.add(below, node.emit(relax.op.nn.relu(x)))


def _lp_normalization(node: Node) -> relax.Expr:
    """x / (sum |x|^p)^(1/p) along an axis, 0 where that is 0."""
    x, axis, order = node.inputs[0], node.attrs.get("axis", -1), node.attrs.get("p", 2)
    if order not in (1, 2):
        raise ModelError(f"its p is {order}; the standard knows 1 and 2")
    terms = node.emit(relax.op.abs(x) if order == 1 else relax.op.multiply(x, x))
    norm = node.emit(relax.op.sum(terms, axis, keepdims=True))
    norm = norm if order == 1 else node.emit(relax.op.sqrt(norm))
    zero, one = relax.const(0.0, node.dtype()), relax.const(1.0, node.dtype())
    divisor = node.emit(relax.op.where(node.emit(relax.op.equal(norm, zero)), one, norm))
    return relax.op.divide(x, divisor)


def _mean_variance(node: Node) -> relax.Expr:
    """(x - mean) / (sqrt(mean of (x - mean)^2) + 1e-9) over the axes; the standard's body is of float32 alone."""
    axes = list(node.attrs.get("axes", (0, 2, 3)))
    mean = node.emit(relax.op.mean(node.inputs[0], axes, keepdims=True))
    centred = node.emit(relax.op.subtract(node.inputs[0], mean))
    variance = node.emit(relax.op.mean(node.emit(relax.op.multiply(centred, centred)), axes, keepdims=True))
    spread = node.emit(relax.op.add(node.emit(relax.op.sqrt(variance)), relax.const(1e-9, node.dtype())))
    return relax.op.divide(centred, spread)


def _lrn(node: Node) -> relax.Expr | None:
    """x / (bias + alpha * mean of squares) ^ beta, the mean over `size` channels around each, zeros beyond the ends."""
    x, dtype, rank = node.inputs[0], node.dtype(), len(node.shape())
    if rank not in (3, 4):
        return None
    size = node.attrs["size"]
    squares = node.emit(relax.op.expand_dims(node.emit(relax.op.multiply(x, x)), 1))
    pool = relax.op.nn.avg_pool2d if rank == 3 else relax.op.nn.avg_pool3d
    beside = [0] * (rank - 2)
    pads = [(size - 1) // 2, *beside, size // 2, *beside]
    means = node.emit(pool(squares, (size, *[1] * (rank - 2)), padding=pads, count_include_pad=True))
    numbers = (("alpha", 1e-4), ("bias", 1.0), ("beta", 0.75))
    alpha, bias, beta = (relax.const(node.attrs.get(name, default), dtype) for name, default in numbers)
    scaled = node.emit(relax.op.multiply(node.emit(relax.op.squeeze(means, [1])), alpha))
    return relax.op.divide(x, node.emit(relax.op.power(node.emit(relax.op.add(scaled, bias)), beta)))


def _reduce_l2(node: Node) -> relax.Expr:
    """The root of the sum of squares over the axes; of integers the whole part, in float32."""
    x, dtype, axes = node.inputs[0], node.dtype(), node.axes()
    total = node.emit(relax.op.multiply(x, x))
    if axes or not node.attrs.get("noop_with_empty_axes", 0):
        keepdims = bool(node.attrs.get("keepdims", 1))
        total = node.emit(relax.op.sum(total, axes or None, keepdims=keepdims))
    if "float" in dtype:
        return relax.op.sqrt(total)
    return relax.op.astype(node.emit(relax.op.sqrt(node.emit(relax.op.astype(total, "float32")))), dtype)


CONVERTERS: dict[str, Converter] = {
    "Celu": _celu,
    "Elu": _elu,
    "LRN": _lrn,
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance,
    "ReduceL2": _reduce_l2,
    "Selu": _selu,
}
