"""Random tensors with a seed: a NeuronCore keeps no state between runs, so their values are made at compile time.

The generator is Philox-4x64, which is counter-based: the values follow from the seed and the shape alone, and are the
same in every run, as a seed asks. Without a seed a model asks for new values in every run; that is refused.
`DRAWING` are the operators that take a seed.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from onnx import helper
from tvm import relax

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.onnx.converters.converter import Converter, Node

Draw = Callable[[np.random.Generator, Node, tuple[int, ...]], NDArray[np.float64]]


def _generator(node: Node) -> np.random.Generator:
    if "seed" not in node.attrs:
        raise ModelError(
            "it has no seed, so it would have to give new values in every run, for which a compiled model keeps no "
            "state: set its attribute seed, or make the values outside and give them as an input"
        )
    return np.random.Generator(np.random.Philox(key=int(np.float32(node.attrs["seed"]).view(np.uint32))))


def _uniform(generator: np.random.Generator, node: Node, shape: tuple[int, ...]) -> NDArray[np.float64]:
    low, high = node.attrs.get("low", 0.0), node.attrs.get("high", 1.0)
    return low + (high - low) * generator.random(shape)


def _normal(generator: np.random.Generator, node: Node, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return float(node.attrs.get("mean", 0.0)) + float(node.attrs.get("scale", 1.0)) * generator.standard_normal(shape)


def _dtype(node: Node, default: str) -> str:
    return str(helper.tensor_dtype_to_np_dtype(node.attrs["dtype"])) if node.attrs.get("dtype") else default


def _drawn(draw: Draw) -> Converter:
    """A tensor of the shape that the attribute says."""

    def convert(node: Node) -> relax.Expr:
        shape = tuple(int(extent) for extent in node.attrs["shape"])
        return relax.const(draw(_generator(node), node, shape), _dtype(node, "float32"))

    return convert


def _drawn_like(draw: Draw) -> Converter:
    """A tensor of the operand's shape."""
    return lambda node: relax.const(draw(_generator(node), node, node.shape()), _dtype(node, node.dtype()))


def _bernoulli(node: Node) -> relax.Expr:
    """1 where a uniform number is less than the probability: max(sign(p - u), 0)."""
    limits = relax.const(_generator(node).random(node.shape(), np.float32), node.dtype())
    sign = node.emit(relax.op.sign(node.emit(relax.op.subtract(node.inputs[0], limits))))
    drawn = node.emit(relax.op.nn.relu(sign))
    dtype = _dtype(node, node.dtype())
    return drawn if dtype == node.dtype() else relax.op.astype(drawn, dtype)


def _multinomial(node: Node) -> relax.Expr:
    """Classes drawn by their logarithmic probabilities: argmax(p + g), where g is of Gumbel's distribution."""
    *rows, classes = node.shape()
    noise = _generator(node).gumbel(size=(*rows, node.attrs.get("sample_size", 1), classes))
    given = node.emit(relax.op.expand_dims(node.inputs[0], -2))
    drawn = node.emit(relax.op.add(given, relax.const(noise, node.dtype())))
    dtype = _dtype(node, "int32")
    found = relax.op.argmax(drawn, -1)
    return found if dtype == "int64" else relax.op.astype(node.emit(found), dtype)


CONVERTERS: dict[str, Converter] = {
    "Multinomial": _multinomial,
    "RandomUniform": _drawn(_uniform),
    "RandomUniformLike": _drawn_like(_uniform),
    "RandomNormal": _drawn(_normal),
    "RandomNormalLike": _drawn_like(_normal),
    "Bernoulli": _bernoulli,
}

DRAWING = tuple(CONVERTERS)
