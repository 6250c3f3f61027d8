"""Sums of products: convolutions of every form, matrix products of any rank, Gemm, Einsum."""

from collections.abc import Sequence

import numpy as np

from tests.random_models.evaluate import UnfitError
from tests.random_models.growth import Growth
from tests.random_models.value import Value

_CHANNELS = (1, 2, 3, 4, 6, 8, 13, 16, 20, 32, 33, 64, 130)


def image(g: Growth, spatial: int) -> Value:
    """A float tensor of images; where there is none, another one is made into it, or it is a new input."""

    def fits(v: Value) -> bool:
        return v.is_float and v.rank == spatial + 2

    if g.chance(0.7) or g.folding:
        try:
            return g.find(fits)
        except UnfitError:
            pass
    if g.folding:
        return g.constant(g.normal([1, g.draw(1, 8), *(g.draw(2, 6) for _ in range(spatial))]))
    if g.chance(0.3):
        x = g.floats(1)
        shape = [1, *x.shape] if x.rank == spatial + 1 else [1, -1, *([1] * spatial)]
        return g.add("Reshape", x, g.vector(shape))
    if len(g.inputs) >= 5:
        raise UnfitError("inputs enough")
    most = {1: 40, 2: 15, 3: 6}[spatial]
    shape = [g.one_of([1, 1, 2, 3]), g.one_of(_CHANNELS), *(g.draw(1, most) for _ in range(spatial))]
    return g.input(g.random(shape, g.main_float))


def filters(g: Growth, shape: list[int], fan_in: int) -> Value:
    """Weights: constant, made of constants, or known at run time only."""
    array = g.normal(shape, fan_in**-0.5)
    kind = g.draw(0, 9)
    if g.folding or kind < 7 or len(g.inputs) >= 5:
        return g.weight(array)
    if kind == 7:
        return g.input(array)
    if kind == 8 and g.main_float == "float32":
        whole = g.constant(g.rng.integers(-127, 128, shape).astype(np.int8))
        return g.add("DequantizeLinear", whole, g.constant(np.float32(fan_in**-0.5 / 127)))
    return g.add("Mul", g.weight(array), g.constant(g.rng.uniform(0.5, 1.5, [shape[0], *[1] * (len(shape) - 1)])
                                                    .astype(g.main_float)))  # fmt: skip


def _window(g: Growth, x: Value) -> tuple[list[int], dict[str, list[int] | str]]:
    """A kernel's shape and attributes; it may lie in the padding with some taps, or cut the image into patches."""
    if g.chance(0.1):
        patch = [g.one_of([side for side in (1, 2, 3, 4, 6, 8) if side <= extent]) for extent in x.shape[2:]]
        return patch, {"strides": patch}
    kernel, strides, dilations, before, after = [], [], [], [], []
    for extent in x.shape[2:]:
        k, d = g.one_of([1, 2, 3, 3, 3, 4, 5, 7]), g.one_of([1, 1, 1, 2, 3, 6, 12])
        reach = (k - 1) * d
        pads = [g.one_of([0, reach // 2, d, g.draw(0, reach)]) for _ in range(2)]
        if g.chance(0.5):
            pads[1] = pads[0]
        while extent + sum(pads) <= reach:
            pads[g.draw(0, 1)] += 1
        for values, value in ((kernel, k), (dilations, d), (before, pads[0]), (after, pads[1])):
            values.append(value)
        strides.append(g.one_of([1, 1, 1, 2, 3]))
    attributes: dict[str, list[int] | str] = {"strides": strides, "dilations": dilations, "pads": before + after}
    if g.chance(0.15):
        attributes = {"strides": strides, "auto_pad": auto_pad(g, x.shape[2:], kernel, strides)}
    return kernel, attributes


def auto_pad(g: Growth, extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int]) -> str:
    """SAME only where windows reach the end: else it asks for padding below 0, which onnxruntime cuts or refuses."""
    sizes = zip(extents, kernel, strides, strict=True)
    is_reached = all((extent - 1) // stride * stride + size >= extent for extent, size, stride in sizes)
    return g.one_of(["SAME_UPPER", "SAME_LOWER", "VALID"] if is_reached else ["VALID"])


def _bias(g: Growth, count: int) -> list[Value]:
    return [g.constant(g.normal([count], 0.3))] if g.chance(0.6) else []


def conv(g: Growth, spatial: int | None = None) -> Value:
    spatial = spatial or g.one_of([1, 2, 2, 2, 2, 3])
    x = image(g, spatial)
    channels = x.shape[1]
    group = g.one_of([1, 1, 1, channels, *[d for d in range(1, channels + 1) if channels % d == 0]])
    out = group * g.draw(1, max(1, g.one_of(_CHANNELS) // group))
    kernel, attributes = _window(g, x)
    fan_in = channels // group * int(np.prod(kernel))
    return g.add("Conv", x, filters(g, [out, channels // group, *kernel], fan_in), *_bias(g, out), group=group,
                 kernel_shape=kernel, **attributes)  # fmt: skip


def conv_of_cast(g: Growth) -> None:
    """An image of bytes, cast and convolved."""
    x = g.of_dtype(("uint8", "int8", "bool", "int32"), 4)
    x = g.add("Cast", x, to={"float32": 1, "float16": 10, "float64": 11}[g.main_float])
    kernel, attributes = _window(g, x)
    out = g.draw(1, 12)
    g.add(
        "Conv",
        x,
        filters(g, [out, x.shape[1], *kernel], x.shape[1] * int(np.prod(kernel))),
        *_bias(g, out),
        **attributes,
    )


def block(g: Growth) -> None:
    """Convolution, normalisation, activation, and perhaps a sum with what was there before."""
    y = conv(g, 2)
    c = y.shape[1]
    numbers = [g.rng.uniform(0.5, 1.5, c), g.rng.normal(0, 0.3, c), g.rng.normal(0, 0.3, c), g.rng.uniform(0.5, 1.5, c)]
    y = g.add("BatchNormalization", y, *(g.constant(each.astype(g.main_float)) for each in numbers))
    g.add(g.one_of(["Relu", "Sigmoid", "LeakyRelu", "HardSigmoid"]), y)


def conv_transpose(g: Growth) -> None:
    spatial = g.one_of([1, 2, 2])
    x = image(g, spatial)
    channels = x.shape[1]
    group = g.one_of([1, 1, 1, channels, *[d for d in range(1, channels + 1) if channels % d == 0]])
    out = g.draw(1, 6)
    kernel = [g.draw(1, 4) for _ in range(spatial)]
    strides = [g.draw(1, 3) for _ in range(spatial)]
    dilations = [g.one_of([1, 1, 1, 2]) for _ in range(spatial)]
    attributes: dict[str, object] = {"strides": strides, "dilations": dilations, "group": group}
    if g.chance(0.4):
        attributes["output_padding"] = [g.draw(0, max(s, d) - 1) for s, d in zip(strides, dilations, strict=True)]
    if g.chance(0.5):
        attributes["pads"] = [g.draw(0, (k - 1) * d) for k, d in zip(kernel * 2, dilations * 2, strict=True)]
    fan_in = max(1, channels // group * int(np.prod(kernel)) // int(np.prod(strides)))
    g.add("ConvTranspose", x, filters(g, [channels, out, *kernel], fan_in), *_bias(g, out * group), **attributes)


def matmul(g: Growth) -> None:
    """Of any ranks, broadcast, with constant weights or two tensors known at run time."""
    x = g.floats(1, 5)
    inner, width = x.shape[-1], g.one_of([1, 2, 5, 16, 31, 64, 130])
    kind = g.draw(0, 9)
    if kind < 4 or g.folding:
        g.add("MatMul", x, filters(g, [inner, width], inner))
        return
    if kind < 6 and x.rank >= 3:
        batch = [1 if g.chance(0.3) else extent for extent in x.shape[:-2]][g.draw(0, x.rank - 2) :]
        g.add("MatMul", x, filters(g, [*batch, inner, width], inner))
        return
    if kind == 6:
        g.add("MatMul", x, filters(g, [inner], inner))
        return
    if kind == 7 and x.rank >= 2:
        rows = g.draw(1, 9)
        g.add("MatMul", filters(g, [rows, x.shape[-2]], x.shape[-2]), x)
        return
    if x.rank >= 2 and kind == 8:
        y = g.add("Transpose", x, perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2])
        g.add("MatMul", x, y)
        return
    y = g.floats(2, 4, lambda v: v.shape[-2] == inner and v.dtype == x.dtype)
    g.add("MatMul", x, y)


def gemm(g: Growth) -> None:
    x = g.floats(2, 2)
    turn_a, turn_b = g.draw(0, 1), g.draw(0, 1)
    rows, inner = x.shape[::-1] if turn_a else x.shape
    width = g.one_of([1, 3, 10, 64, 150])
    weights = filters(g, [width, inner] if turn_b else [inner, width], inner)
    bias = [g.operand(g.one_of([[width], [1, width], [rows, 1], [rows, width], [1], []]))] if g.chance(0.7) else []
    attributes = {"alpha": 0.5} if g.chance(0.3) else {}
    if bias and g.chance(0.3):
        attributes["beta"] = g.one_of([2.0, 0.25])
    g.add("Gemm", x, weights, *bias, transA=turn_a, transB=turn_b, **attributes)


_EQUATIONS = (
    "bij,bjk->bik", "ij,jk->ik", "bhid,bhjd->bhij", "bhij,bhjd->bhid", "bij->bji", "ij->j", "ij->", "bij,bij->b",
    "i,j->ij", "bij,kj->bik", "abc,cd->abd", "ii->i", "ij,ij->ij", "bnd,hdk->bhnk", "abcd,cd->ab", "ij,kj,kl->il",
    "...ij,jk->...ik",
)  # fmt: skip


def einsum(g: Growth) -> None:
    equation = g.one_of(_EQUATIONS)
    terms = equation.split("->")[0].split(",")
    if "..." in equation:
        x = g.floats(2, 4)
        letters = dict(zip("ij", x.shape[-2:], strict=True))
    else:
        x = g.floats(len(terms[0]), len(terms[0]))
        letters = dict(zip(terms[0], x.shape, strict=True))
        if tuple(letters[letter] for letter in terms[0]) != x.shape:
            raise UnfitError("not square")
    others = []
    for term in terms[1:]:
        for letter in term:
            letters.setdefault(letter, g.draw(1, 9))
        others.append(g.operand([letters[letter] for letter in term], x.dtype))
    g.add("Einsum", x, *others, equation=equation)


def mlp(g: Growth) -> None:
    x = g.floats(2, 4)
    inner, hidden = x.shape[-1], g.one_of([5, 16, 48, 129])
    y = g.add("Add", g.add("MatMul", x, filters(g, [inner, hidden], inner)), g.constant(g.normal([hidden], 0.3)))
    y = g.add(g.one_of(["Relu", "Sigmoid", "Tanh", "Erf"]), y)
    y = g.add("MatMul", y, filters(g, [hidden, inner], hidden))
    g.add("Add", x, y)


STEPS = (conv, conv, conv, conv_of_cast, block, block, conv_transpose, matmul, matmul, matmul, gemm, einsum, mlp)
