"""Operators of training: optimizers, batch statistics, and dropout with a seed, which makes its mask a constant."""

from collections.abc import Callable

import numpy as np
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node

_Values = list[relax.Expr]


def _dropout(node: Node) -> relax.Expr:
    """The operand; in training x * mask / (1 - ratio), with the mask that NumPy draws for the seed."""
    x, shape = node.inputs[0], node.shape()
    ratio, training = node.constant(1), node.constant(2)
    if (node.given(2) is not None and training is None) or (training is not None and training.any() and _open(node, 1)):
        raise ModelError("its ratio or training_mode is known at run time only")
    share = float(ratio.reshape(())) if ratio is not None else node.attrs.get("ratio", 0.5)
    mask = np.ones(shape, bool)
    if training is not None and training.any() and share:
        if "seed" not in node.attrs:
            raise ModelError("it trains without a seed, and the core draws no random numbers; give the attribute seed")
        mask = np.random.RandomState(node.attrs["seed"]).uniform(0, 1, shape) >= share
        factor = (mask / (1 - share)).astype(node.dtype())
        x = node.emit(relax.op.multiply(x, relax.const(factor, node.dtype())))
    return relax.Tuple([x, relax.const(mask)]) if node.outputs > 1 else x


def _open(node: Node, position: int) -> bool:
    return node.given(position) is not None and node.constant(position) is None


def _batch_normalization(node: Node) -> relax.Expr | None:
    """In training: normalised by the batch's own mean and variance, and the running ones moved towards them."""
    if not node.attrs.get("training_mode", 0):
        if node.outputs > 1:
            raise ModelError("its further outputs are those of training, which is off")
        return None
    x, scale, bias, mean, variance = node.inputs
    kept = node.attrs.get("momentum", 0.9)
    axes = [axis for axis in range(len(node.shape())) if axis != 1]
    # The population's variance, as the standard says.
    batch = [node.emit(relax.op.mean(x, axes)), node.emit(relax.op.variance(x, axes))]
    moved = [
        _sum(node, _times(node, kept, old), _times(node, 1 - kept, node.emit(relax.op.astype(new, old.ty.dtype))))
        for old, new in zip((mean, variance), batch, strict=True)
    ]

    spreads = [-1 if axis == 1 else 1 for axis in range(len(node.shape()))]

    def shaped(value: relax.Expr) -> relax.Expr:
        return node.emit(relax.op.reshape(node.emit(relax.op.astype(value, node.dtype())), spreads))

    centred = node.emit(relax.op.subtract(x, shaped(batch[0])))
    shifted = _sum(node, batch[1], relax.const(node.attrs.get("epsilon", 1e-5), batch[1].ty.dtype))
    ratio = node.emit(relax.op.multiply(centred, shaped(node.emit(relax.op.rsqrt(shifted)))))
    y = _sum(node, node.emit(relax.op.multiply(ratio, shaped(scale))), shaped(bias))
    return relax.Tuple([y, *moved][: node.outputs]) if node.outputs > 1 else y


def _optimizer(states: int, step: Callable[[Node, relax.Expr, relax.Expr, _Values], _Values]) -> Converter:
    """`step` (rate, time, [parameter, gradient, states...]) for every parameter; outputs grouped as the inputs are."""

    def convert(node: Node) -> relax.Expr:
        rate, time, *rest = node.inputs
        count = len(rest) // (2 + states)
        results = [step(node, rate, time, rest[index::count]) for index in range(count)]
        return relax.Tuple([result[group] for group in range(1 + states) for result in results])

    return convert


def _adagrad(node: Node, rate: relax.Expr, time: relax.Expr, values: _Values) -> _Values:
    x, gradient, squares = values
    gradient = _regularised(node, x, gradient)
    dtype = x.ty.dtype
    decay = _times(node, node.attrs.get("decay_factor", 0.0), node.emit(relax.op.astype(time, dtype)))
    slowed = node.emit(relax.op.divide(rate, _sum(node, decay, relax.const(1.0, dtype))))
    squares = _sum(node, squares, _product(node, gradient, gradient))
    root = _sum(node, node.emit(relax.op.sqrt(squares)), relax.const(node.attrs.get("epsilon", 1e-6), dtype))
    change = node.emit(relax.op.divide(_product(node, slowed, gradient), root))
    return [node.emit(relax.op.subtract(x, change)), squares]


def _momentum(node: Node, rate: relax.Expr, time: relax.Expr, values: _Values) -> _Values:
    x, gradient, speed = values
    gradient = _regularised(node, x, gradient)
    dtype = x.ty.dtype
    is_later = node.emit(relax.op.greater(time, relax.const(0, time.ty.dtype)))
    share = node.emit(relax.op.where(is_later, relax.const(node.attrs["beta"], dtype), relax.const(1.0, dtype)))
    speed = _sum(node, _times(node, node.attrs["alpha"], speed), _product(node, share, gradient))
    change = speed
    if node.attrs["mode"] == b"nesterov":
        change = _sum(node, gradient, _times(node, node.attrs["alpha"], speed))
    return [node.emit(relax.op.subtract(x, _product(node, rate, change))), speed]


def _adam(node: Node, rate: relax.Expr, time: relax.Expr, values: _Values) -> _Values:
    x, gradient, speed, squares = values
    gradient = _regularised(node, x, gradient)
    dtype, alpha, beta = x.ty.dtype, node.attrs.get("alpha", 0.9), node.attrs.get("beta", 0.999)
    speed = _sum(node, _times(node, alpha, speed), _times(node, 1 - alpha, gradient))
    squares = _sum(node, _times(node, beta, squares), _times(node, 1 - beta, _product(node, gradient, gradient)))
    root = _sum(node, node.emit(relax.op.sqrt(squares)), relax.const(node.attrs.get("epsilon", 1e-6), dtype))

    def left(factor: float) -> relax.Expr:
        """1 - factor ** time."""
        power = node.emit(relax.op.power(relax.const(factor, dtype), node.emit(relax.op.astype(time, dtype))))
        return node.emit(relax.op.subtract(relax.const(1.0, dtype), power))

    unbiased = node.emit(relax.op.divide(_product(node, rate, node.emit(relax.op.sqrt(left(beta)))), left(alpha)))
    is_later = node.emit(relax.op.greater(time, relax.const(0, time.ty.dtype)))
    adjusted = node.emit(relax.op.where(is_later, unbiased, rate))
    moved = _product(node, adjusted, node.emit(relax.op.divide(speed, root)))
    found = node.emit(relax.op.subtract(x, moved))
    return [_times(node, 1 - node.attrs.get("norm_coefficient_post", 0.0), found), speed, squares]


def _regularised(node: Node, x: relax.Expr, gradient: relax.Expr) -> relax.Expr:
    coefficient = node.attrs.get("norm_coefficient", 0.0)
    return _sum(node, _times(node, coefficient, x), gradient) if coefficient else gradient


def _times(node: Node, factor: float, value: relax.Expr) -> relax.Expr:
    return node.emit(relax.op.multiply(value, relax.const(factor, value.ty.dtype)))


def _product(node: Node, a: relax.Expr, b: relax.Expr) -> relax.Expr:
    return node.emit(relax.op.multiply(a, b))


def _sum(node: Node, a: relax.Expr, b: relax.Expr) -> relax.Expr:
    return node.emit(relax.op.add(a, b))


CONVERTERS: dict[str, Converter] = {
    "Adagrad": _optimizer(1, _adagrad),
    "Adam": _optimizer(2, _adam),
    "BatchNormalization": _batch_normalization,
    "Dropout": _dropout,
    "Momentum": _optimizer(1, _momentum),
}
