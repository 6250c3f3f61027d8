"""Normalisations and softmaxes, as one operator and written out."""

import numpy as np
import onnx

from tests.random_models.evaluate import UnfitError
from tests.random_models.growth import Growth
from tests.random_models.steps.linear import image
from tests.random_models.steps.reductions import reduced


def softmax(g: Growth) -> None:
    x = g.floats(1)
    g.add(g.one_of(["Softmax", "Softmax", "Softmax", "LogSoftmax", "Hardmax"]), x, axis=g.draw(-x.rank, x.rank - 1))


def masked_softmax(g: Growth) -> None:
    x = g.floats(2)
    mask = g.operand([1 if g.chance(0.3) else extent for extent in x.shape], "bool")
    low = g.constant(np.array(g.one_of([-100.0, -1000.0]), x.exact.dtype))
    g.add("Softmax", g.add("Where", mask, x, low), axis=-1)


def batch_norm(g: Growth) -> None:
    x = g.floats(2, 5)
    c = x.shape[1]
    numbers = [g.rng.uniform(0.5, 1.5, c), g.rng.normal(0, 0.3, c), g.rng.normal(0, 0.3, c), g.rng.uniform(0.5, 1.5, c)]
    g.add("BatchNormalization", x, *(g.constant(each.astype(x.dtype)) for each in numbers))


def layer_norm(g: Growth) -> None:
    x = g.floats(1)
    axis = g.draw(0, x.rank - 1)
    scale, bias = g.constant(g.random(x.shape[axis:], x.dtype)), g.constant(g.random(x.shape[axis:], x.dtype))
    if g.opset >= 23 and g.chance(0.4):
        g.add("RMSNormalization", x, scale, axis=axis, epsilon=1e-3)
    elif g.opset >= 17:
        g.add("LayerNormalization", x, scale, *([bias] if g.chance(0.7) else []), axis=axis, epsilon=1e-3)
    else:
        written_out(g)


def written_out(g: Growth) -> None:
    """LayerNorm of primitive operators."""
    x = g.floats(1)
    apart = g.add("Sub", x, reduced(g, "ReduceMean", x, [-1], 1))
    square = (
        g.add("Mul", apart, apart) if g.chance(0.5) else g.add("Pow", apart, g.constant(np.array(2, x.exact.dtype)))
    )
    mean = reduced(g, "ReduceMean", square, [-1], 1)
    root = g.add("Sqrt", g.add("Add", mean, g.constant(np.array(1e-3, x.exact.dtype))))
    y = g.add("Div", apart, root) if g.chance(0.5) else g.add("Mul", apart, g.add("Reciprocal", root))
    g.add(
        "Add",
        g.add("Mul", y, g.constant(g.random([x.shape[-1]], x.dtype))),
        g.constant(g.random([x.shape[-1]], x.dtype)),
    )


def group_norm(g: Growth) -> None:
    x = image(g, g.one_of([1, 2]))
    c = x.shape[1]
    if np.prod(x.shape[2:]) < 2:
        raise UnfitError("one element has no deviation")
    if g.opset >= 21 and g.chance(0.6):
        group = g.one_of([d for d in range(1, c + 1) if c % d == 0])
        numbers = [g.constant(g.random([c], x.dtype)) for _ in range(2)]
        stage = {"stash_type": onnx.TensorProto.DOUBLE} if x.dtype == "float64" else {}  # of the reference, too
        g.add("GroupNormalization", x, *numbers, num_groups=group, epsilon=1e-3, **stage)
    else:
        numbers = [g.constant(g.random([c], x.dtype)) for _ in range(2)]
        g.add("InstanceNormalization", x, *numbers, epsilon=1e-3)


def others(g: Growth) -> None:
    op = g.one_of(["LpNormalization", "MeanVarianceNormalization", "LRN"])
    if op == "LpNormalization":
        x = g.floats(1)
        g.add(op, x, axis=g.draw(-x.rank, x.rank - 1), p=g.draw(1, 2))
    elif op == "LRN":
        g.add(op, image(g, 2), size=g.one_of([3, 5]), alpha=0.4, beta=0.75, bias=1.0)
    else:
        g.add(op, image(g, 2), axes=g.one_of([[0, 2, 3], [2, 3], [1]]))


STEPS = (softmax, softmax, softmax, masked_softmax, batch_norm, layer_norm, layer_norm, written_out, group_norm, others)
