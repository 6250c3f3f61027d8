"""Operators of Relay's language on the core and the CPU, beside NumPy in float64: many in one function and build."""

from collections.abc import Callable, Sequence
from math import erf

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tvm_neuron import BuildOptions, build_options, relay
from tvm_neuron.relay.op import OPERATORS

RNG = np.random.default_rng(18)
X = RNG.standard_normal((3, 4, 6)).astype("float32")
Y = RNG.standard_normal((3, 4, 6)).astype("float32")
POSITIVE = RNG.uniform(0.2, 0.9, (3, 4, 6)).astype("float32")
WHOLE, DIVISOR = (RNG.integers(-9, 9, (3, 4, 6)).astype("int32") for _ in range(2))
DIVISOR[DIVISOR == 0] = 5
IMAGE = RNG.standard_normal((2, 4, 7, 9)).astype("float32")
WEIGHT = RNG.standard_normal((6, 4, 3, 3)).astype("float32")
VECTOR = RNG.standard_normal(4).astype("float32")

Case = tuple[str, Callable[..., object], Callable[..., object], Sequence[NDArray]]


def conv2d(data: NDArray, weight: NDArray, stride: int = 1, pad: int = 0, groups: int = 1) -> NDArray:
    data = np.pad(data.astype("float64"), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    size, count = weight.shape[1], len(weight) // groups
    windows = sliding_window_view(data, weight.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    parts = [
        np.einsum("ncyxij,ocij->noyx", windows[:, g * size : (g + 1) * size], weight[g * count : (g + 1) * count])
        for g in range(groups)
    ]
    return np.concatenate(parts, 1)


def in_blocks(data: NDArray) -> NDArray:
    """NCHW as NCHW2c."""
    batch, channels, height, width = data.shape
    return data.reshape(batch, channels // 2, 2, height, width).transpose(0, 1, 3, 4, 2).copy()


def pool(data: NDArray, size: int, reduce: Callable[..., NDArray]) -> NDArray:
    return reduce(sliding_window_view(data, (size, size), (2, 3)), axis=(-2, -1))


def softmax(x: NDArray, axis: int) -> NDArray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normalised(x: NDArray, axes: tuple[int, ...]) -> NDArray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def along(vector: NDArray, rank: int, axis: int) -> NDArray:
    return vector.reshape([-1 if each == axis else 1 for each in range(rank)])


def unary(names: str, reference: object, data: NDArray) -> list[Case]:
    return [(n, lambda x, n=n: getattr(relay, n)(x), getattr(reference, n), [data]) for n in names.split()]


def binary(names: str, reference: object, *data: NDArray) -> list[Case]:
    return [(n, lambda x, y, n=n: getattr(relay, n)(x, y), getattr(reference, n), data) for n in names.split()]


ELEMENTWISE: list[Case] = [
    *unary("tan cos cosh sin sinh exp sqrt floor ceil trunc abs sign tanh negative log log2 log10", np, POSITIVE),
    *unary("isnan isfinite isinf", np, X),
    ("acos", relay.acos, np.arccos, [POSITIVE]),
    ("asin", relay.asin, np.arcsin, [POSITIVE]),
    ("atan", relay.atan, np.arctan, [X]),
    ("atanh", relay.atanh, np.arctanh, [POSITIVE]),
    ("acosh", lambda x: relay.acosh(x + relay.const(1.5)), lambda x: np.arccosh(x + 1.5), [POSITIVE]),
    ("asinh", relay.asinh, np.arcsinh, [X]),
    ("erf", relay.erf, np.vectorize(erf), [X]),
    ("rsqrt", relay.rsqrt, lambda x: x**-0.5, [POSITIVE]),
    ("sigmoid", relay.sigmoid, lambda x: 1 / (1 + np.exp(-x)), [X]),
    ("round", relay.round, np.rint, [X]),
    *binary("add subtract multiply divide maximum minimum power", np, POSITIVE, POSITIVE[:, :1]),
    *binary("equal not_equal less less_equal greater greater_equal", np, WHOLE, DIVISOR),
    *binary("bitwise_and bitwise_or bitwise_xor floor_divide add maximum", np, WHOLE, DIVISOR),
    ("floor_mod", relay.floor_mod, np.mod, [WHOLE, DIVISOR]),
    ("trunc_divide", relay.trunc_divide, lambda x, y: np.trunc(x / y), [WHOLE, DIVISOR]),
    ("trunc_mod", relay.trunc_mod, np.fmod, [WHOLE, DIVISOR]),
    ("mod", relay.mod, np.fmod, [X, POSITIVE]),
    ("bitwise_not", relay.bitwise_not, np.invert, [WHOLE]),
    ("left_shift", lambda x: relay.left_shift(x, relay.const(2)), lambda x: x << 2, [WHOLE]),
    ("right_shift", lambda x: relay.right_shift(x, relay.const(2)), lambda x: x >> 2, [WHOLE]),
    ("logical_and", relay.logical_and, np.logical_and, [X > 0, Y > 0]),
    ("logical_or", relay.logical_or, np.logical_or, [X > 0, Y > 0]),
    ("logical_xor", relay.logical_xor, np.logical_xor, [X > 0, Y > 0]),
    ("logical_not", relay.logical_not, np.logical_not, [X > 0]),
    ("clip", lambda x: relay.clip(x, -0.5, 0.7), lambda x: np.clip(x, np.float32(-0.5), np.float32(0.7)), [X]),
    ("cast", lambda x: relay.cast(x * 4.0, "int32"), lambda x: (x * 4).astype("int32"), [X]),
    ("where", relay.where, np.where, [X > 0, X, Y]),
    ("operators", lambda x, y: (2.0 - x) * y / 3.0 + (-x) - 1.0, lambda x, y: (2 - x) * y / 3 - x - 1, [X, Y]),
]

REDUCTIONS: list[Case] = [
    *[
        (
            f"{n} {axis}",
            lambda x, n=n, a=axis: getattr(relay, n)(x, axis=a),
            lambda x, n=n, a=axis: getattr(np, n)(x, a),
            [d],
        )
        for n, axis, d in [
            ("sum", 1, X),
            ("sum", None, X),
            ("prod", (0, 2), POSITIVE),
            ("max", -1, X),
            ("min", (1, 2), X),
            ("mean", None, X),
            ("all", 1, X > -1),
            ("any", (0, 1), X > 1),
            ("argmax", 1, X),
            ("argmin", 2, X),
        ]
    ],
    (
        "exclude",
        lambda x: relay.sum(x, axis=1, exclude=True, keepdims=True),
        lambda x: x.sum((0, 2), keepdims=True),
        [X],
    ),
    ("argmax of all", relay.argmax, np.argmax, [X]),
    (
        "last index",
        lambda x: relay.argmax(x, axis=1, select_last_index=True),
        lambda x: 3 - x[:, ::-1].argmax(1),
        [WHOLE],
    ),
    ("variance", lambda x: relay.variance(x, axis=(1, 2)), lambda x: x.var((1, 2)), [X]),
    ("unbiased", lambda x: relay.variance(x, axis=1, unbiased=True), lambda x: x.var(1, ddof=1), [X]),
    ("std", lambda x: relay.std(x, axis=2, keepdims=True), lambda x: x.std(2, keepdims=True), [X]),
    ("mean_variance", lambda x: relay.mean_variance(x, axis=1), lambda x: [x.mean(1), x.var(1)], [X]),
    ("mean_std", lambda x: relay.mean_std(x, axis=1), lambda x: [x.mean(1), x.std(1)], [X]),
    ("logsumexp", lambda x: relay.logsumexp(x, axis=1), lambda x: np.log(np.exp(x).sum(1)), [X]),
]

SHAPES: list[Case] = [
    ("reshape", lambda x: relay.reshape(x, (0, -1)), lambda x: x.reshape(3, 24), [X]),
    ("reshape -3 -2", lambda x: relay.reshape(x, (-3, -2)), lambda x: x.reshape(12, 6), [X]),
    ("reshape -4", lambda x: relay.reshape(x, (-4, -1, 3, -2)), lambda x: x.reshape(1, 3, 4, 6), [X]),
    ("reverse_reshape", lambda x: relay.reverse_reshape(x, (-1, 0)), lambda x: x.reshape(12, 6), [X]),
    ("expand_dims", lambda x: relay.expand_dims(x, -2, 2), lambda x: x[:, :, None, None], [X]),
    ("squeeze", lambda x: relay.squeeze(relay.expand_dims(x, 0), [0]), lambda x: x, [X]),
    ("transpose", lambda x: relay.transpose(x, (0, -1, 1)), lambda x: x.transpose(0, 2, 1), [X]),
    ("concatenate", lambda x, y: relay.concatenate([x, y], axis=-1), lambda x, y: np.concatenate([x, y], -1), [X, Y]),
    ("stack", lambda x, y: relay.stack([x, y], axis=1), lambda x, y: np.stack([x, y], 1), [X, Y]),
    ("split", lambda x: relay.split(x, 3, axis=2), lambda x: np.split(x, 3, 2), [X]),
    ("split at", lambda x: relay.split(x, (1, 5), axis=2), lambda x: np.split(x, (1, 5), 2), [X]),
    ("broadcast_to", lambda x: relay.broadcast_to(x, (2, 3, 4, 6)), lambda x: np.broadcast_to(x, (2, 3, 4, 6)), [X]),
    ("tile", lambda x: relay.tile(x, (1, 2, 3)), lambda x: np.tile(x, (1, 2, 3)), [X]),
    ("repeat", lambda x: relay.repeat(x, 2, axis=1), lambda x: np.repeat(x, 2, 1), [X]),
    ("reverse", lambda x: relay.reverse(x, axis=1), lambda x: x[:, ::-1], [X]),
    ("collapse_sum_to", lambda x: relay.collapse_sum_to(x, (4, 1)), lambda x: x.sum((0, 2))[:, None], [X]),
    (
        "layout_transform",
        lambda x: relay.layout_transform(relay.layout_transform(x, "NCHW", "NCHW2c"), "NCHW2c", "NHWC"),
        lambda x: x.transpose(0, 2, 3, 1),
        [IMAGE],
    ),
    (
        "blocks",
        lambda x: relay.layout_transform(x, "NCHW", "NCHW2c"),
        lambda x: x.reshape(2, 2, 2, 7, 9).transpose(0, 1, 3, 4, 2),
        [IMAGE],
    ),
    ("meshgrid", lambda x: relay.meshgrid([x, x]), lambda x: np.meshgrid(x, x, indexing="ij"), [VECTOR]),
]

INDEXING: list[Case] = [
    ("take", lambda x, i: relay.take(x, i, axis=1), lambda x, i: x.take(i, 1), [X, np.int32([[3, 0], [1, 1]])]),
    ("take flat", relay.take, lambda x, i: x.ravel()[i], [X, np.int32([3, 71, 20])]),
    ("take clip", lambda x, i: relay.take(x, i, axis=1), lambda x, i: x[:, [0, 3]], [X, np.int32([-4, 9])]),
    (
        "take wrap",
        lambda x, i: relay.take(x, i, axis=1, mode="wrap"),
        lambda x, i: x[:, [2, 1]],
        [X, np.int32([-2, 9])],
    ),
    (
        "take batch",
        lambda x, i: relay.take(x, i, axis=2, batch_dims=1),
        lambda x, i: np.stack([x[n][:, i[n]] for n in range(3)]),
        [X, np.int32([[5, 0], [1, 1], [2, 4]])],
    ),
    (
        "gather",
        lambda x, i: relay.gather(x, 1, i),
        lambda x, i: np.take_along_axis(x, i, 1),
        [X, RNG.integers(0, 4, (3, 2, 6))],
    ),
    ("gather_nd", relay.gather_nd, lambda x, i: x[tuple(i)], [X, np.int64([[0, 2], [3, 1]])]),
    (
        "scatter_elements",
        lambda x, i, u: relay.scatter_elements(x, i, u, axis=1),
        lambda x, i, u: (z := x.copy(), np.put_along_axis(z, i, u, 1))[0],
        [X, RNG.permuted(np.tile(np.arange(4), (3, 6, 1)), axis=2).transpose(0, 2, 1)[:, :2].copy(), Y[:, :2].copy()],
    ),
    (
        "scatter_nd",
        lambda x, i, u: relay.scatter_nd(x, i, u, "add"),
        lambda x, i, u: (z := x.copy(), np.add.at(z, tuple(i), u))[0],
        [X, np.int64([[0, 2, 0], [3, 1, 3]]), Y[:, 0].copy()],
    ),
    (
        "strided_slice",
        lambda x: relay.strided_slice(x, [0, 3, 1], [2, 0, 5], [1, -1, 2]),
        lambda x: x[:2, 3:0:-1, 1:5:2],
        [X],
    ),
    (
        "size",
        lambda x: relay.strided_slice(x, [1, 2], [-1, 3], axes=(0, 2), slice_mode="size"),
        lambda x: x[1:, :, 2:5],
        [X],
    ),
    ("slice_like", lambda x, y: relay.slice_like(x, y, axes=[1]), lambda x, y: x[:, :2], [X, Y[:, :2].copy()]),
    (
        "strided_set",
        lambda x, v: relay.strided_set(x, v, [0, 0, 0], [3, 4, 6], [1, 2, 3]),
        lambda x, v: (z := x.copy(), z.__setitem__(np.s_[:, ::2, ::3], v))[0],
        [X, Y[:, :2, :2].copy()],
    ),
    (
        "sequence_mask",
        lambda x, n: relay.sequence_mask(x, n, mask_value=7.0),
        lambda x, n: np.where(np.arange(3)[:, None, None] < n[None, :, None], x, 7),
        [X, np.int32([1, 3, 2, 0])],
    ),
    (
        "one_hot",
        lambda i: relay.one_hot(i, relay.const(5.0), relay.const(1.0), 4, -1, "float32"),
        lambda i: 1 + 4 * np.eye(4)[i],
        [np.int32([[3, 0], [2, 2]])],
    ),
    ("trilu", lambda x: relay.trilu(x, 1, upper=True), lambda x: np.triu(x, 1), [X]),
    (
        "adv_index",
        lambda x, i, j: relay.adv_index([x, i, j]),
        lambda x, i, j: x[i, j],
        [X, np.int64([[0], [2]]), np.int64([1, 3, 0])],
    ),
    (
        "unravel_index",
        lambda i: relay.unravel_index(i, relay.const([3, 4, 6])),
        lambda i: np.stack(np.unravel_index(i, (3, 4, 6))),
        [np.int32([0, 71, 20])],
    ),
    ("arange", lambda x: x + relay.arange(relay.const(6.0)), lambda x: x + np.arange(6), [X]),
    ("full", lambda x: relay.full(relay.const(3.0), (4, 6)) + x, lambda x: x + 3, [X]),
    (
        "matrix_set_diag",
        relay.matrix_set_diag,
        lambda x, d: np.where(np.eye(4, 6) > 0, d[..., None], x),
        [X, Y[:, :, 0].copy()],
    ),
    ("sort", lambda x: relay.sort(x, axis=1, is_ascend=False), lambda x: -np.sort(-x, 1), [X]),
    ("argsort", lambda x: relay.argsort(x, axis=1), lambda x: np.argsort(x, 1), [X]),
    ("topk", lambda x: relay.topk(x, 2, axis=2, ret_type="values"), lambda x: -np.sort(-x, 2)[..., :2], [X]),
    ("cumsum", lambda x: relay.cumsum(x, axis=1), lambda x: np.cumsum(x, 1), [X]),
    ("cumprod", lambda x: relay.cumprod(x), lambda x: np.cumprod(x), [POSITIVE[0]]),
    ("searchsorted", relay.searchsorted, np.searchsorted, [np.float32([1, 3, 5]), np.float32([0, 3, 4, 9])]),
]

NETWORKS: list[Case] = [
    ("conv2d", lambda x, w: relay.nn.conv2d(x, w, 2, 1), lambda x, w: conv2d(x, w, 2, 1), [IMAGE, WEIGHT]),
    (
        "conv2d NHWC HWIO",
        lambda x, w: relay.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"),
        lambda x, w: conv2d(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)).transpose(0, 2, 3, 1),
        [IMAGE.transpose(0, 2, 3, 1).copy(), WEIGHT.transpose(2, 3, 1, 0).copy()],
    ),
    (
        "conv2d in blocks",
        lambda x, w: relay.nn.conv2d(x, w, data_layout="NCHW2c", kernel_layout="OIHW2i3o"),
        lambda x, w: in_blocks(conv2d(x.transpose(0, 1, 4, 2, 3).reshape(IMAGE.shape), WEIGHT)),
        [in_blocks(IMAGE), WEIGHT.reshape(2, 3, 2, 2, 3, 3).transpose(0, 2, 4, 5, 3, 1).copy()],
    ),
    (
        "depthwise HWOI",
        lambda x, w: relay.nn.conv2d(x, w, groups=4, kernel_layout="HWOI"),
        lambda x, w: conv2d(x, w.transpose(2, 3, 0, 1).reshape(8, 1, 3, 3), groups=4),
        [IMAGE, RNG.standard_normal((3, 3, 4, 2)).astype("float32")],
    ),
    ("conv1d", lambda x, w: relay.nn.conv1d(x, w),
     lambda x, w: conv2d(x[:, :, None], w[:, :, None])[:, :, 0], [IMAGE[:, :, 0].copy(), WEIGHT[:, :, 0].copy()]),
    ("conv2d_transpose", lambda x, w: relay.nn.conv2d_transpose(x, w),
     lambda x, w: conv2d(x, w.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1], pad=2), [IMAGE, WEIGHT[:4, :3].copy()]),
    ("resize1d of corners", lambda x: relay.image.resize1d(x, (20,), None, "NWC", "linear", "align_corners"),
     lambda x: np.apply_along_axis(lambda row: np.interp(np.arange(20) * 3 / 19, np.arange(4), row), 1, x),
     [IMAGE[:, :, 0].copy()]),
    ("max_pool2d", lambda x: relay.nn.max_pool2d(x, (2, 2)), lambda x: pool(x, 2, np.max), [IMAGE]),
    ("avg_pool2d", lambda x: relay.nn.avg_pool2d(x, (3, 3)), lambda x: pool(x, 3, np.mean), [IMAGE]),
    ("global_avg_pool2d", relay.nn.global_avg_pool2d, lambda x: x.mean((2, 3), keepdims=True), [IMAGE]),
    ("adaptive_max_pool2d", lambda x: relay.nn.adaptive_max_pool2d(x, (1, 3)),
     lambda x: np.stack([x[..., i : i + 3].max((2, 3)) for i in (0, 3, 6)], -1)[:, :, None], [IMAGE]),
    ("adaptive_avg_pool2d", lambda x: relay.nn.adaptive_avg_pool2d(x, (7, 2)),
     lambda x: np.stack([x[..., :5].mean(3), x[..., 4:].mean(3)], -1), [IMAGE]),
    ("dense", lambda x, w: relay.nn.dense(x, w), lambda x, w: x @ w.T, [X[0], Y[1]]),
    ("matmul", lambda x, y: relay.nn.matmul(x, y, transpose_a=True), lambda x, y: x.T @ y, [X[0], Y[0]]),
    ("batch_matmul", relay.nn.batch_matmul, lambda x, y: x @ y.transpose(0, 2, 1), [X, Y]),
    ("einsum", lambda x, y: relay.einsum([x, y], "abc,adc->abd"), lambda x, y: np.einsum("abc,adc->abd", x, y), [X, Y]),
    ("softmax", lambda x: relay.nn.softmax(x, axis=1), lambda x: softmax(x, 1), [X]),
    ("log_softmax", lambda x: relay.nn.log_softmax(x, axis=2), lambda x: np.log(softmax(x, 2)), [X]),
    (
        "batch_norm",
        lambda x, g, b, m, v: relay.nn.batch_norm(x, g, b, m, v)[0],
        lambda x, g, b, m, v: (x - along(m, 4, 1)) / np.sqrt(along(v, 4, 1) + 1e-5) * along(g, 4, 1) + along(b, 4, 1),
        [IMAGE, VECTOR, VECTOR + 1, VECTOR * 0.3, VECTOR**2],
    ),
    (
        "layer_norm",
        lambda x, g, b: relay.nn.layer_norm(x, g, b, axis=1),
        lambda x, g, b: normalised(x, (1,)) * along(g, 3, 1) + along(b, 3, 1),
        [X, VECTOR, VECTOR + 1],
    ),
    (
        "instance_norm",
        lambda x, g, b: relay.nn.instance_norm(x, g, b),
        lambda x, g, b: normalised(x, (2, 3)) * along(g, 4, 1) + along(b, 4, 1),
        [IMAGE, VECTOR, VECTOR + 1],
    ),
    (
        "group_norm",
        lambda x, g, b: relay.nn.group_norm(x, g, b, 2),
        lambda x, g, b: (
            normalised(x.reshape(2, 2, 2, 7, 9), (2, 3, 4)).reshape(x.shape) * along(g, 4, 1) + along(b, 4, 1)
        ),
        [IMAGE, VECTOR, VECTOR + 1],
    ),
    ("l2_normalize", lambda x: relay.nn.l2_normalize(x, 1e-3, [1]),
     lambda x: x / np.sqrt(np.maximum((x * x).sum(1, keepdims=True), 1e-3)), [X]),
    ("leaky_relu", lambda x: relay.nn.leaky_relu(x, 0.2), lambda x: np.where(x > 0, x, x * 0.2), [X]),
    ("prelu", lambda x, a: relay.nn.prelu(x, a), lambda x, a: np.where(x > 0, x, x * along(a, 3, 1)), [X, VECTOR]),
    ("bias_add", lambda x, b: relay.nn.bias_add(x, b, axis=-2), lambda x, b: x + along(b, 3, 1), [X, VECTOR]),
    ("relu", relay.nn.relu, lambda x: np.maximum(x, 0), [X]),
    ("batch_flatten", relay.nn.batch_flatten, lambda x: x.reshape(3, 24), [X]),
    ("pad", lambda x: relay.nn.pad(x, ((0, 0), (1, 2), (3, 0)), 2.0),
     lambda x: np.pad(x, ((0, 0), (1, 2), (3, 0)), constant_values=2), [X]),
    ("pad edge", lambda x: relay.nn.pad(x, ((0, 0), (1, 2), (3, 0)), pad_mode="edge"),
     lambda x: np.pad(x, ((0, 0), (1, 2), (3, 0)), "edge"), [X]),
    ("mirror_pad", lambda x: relay.nn.mirror_pad(x, ((0, 0), (1, 2), (3, 0))),
     lambda x: np.pad(x, ((0, 0), (1, 2), (3, 0)), "symmetric"), [X]),
    ("dilate", lambda x: relay.nn.dilate(x, (1, 2, 3)),
     lambda x: (z := np.zeros((3, 7, 16)), z.__setitem__(np.s_[:, ::2, ::3], x))[0], [X]),
    ("depth_to_space", lambda x: relay.nn.depth_to_space(x, 2),
     lambda x: x.reshape(2, 2, 2, 1, 7, 9).transpose(0, 3, 4, 1, 5, 2).reshape(2, 1, 14, 18), [IMAGE]),
    ("space_to_depth", lambda x: relay.nn.space_to_depth(relay.nn.depth_to_space(x, 2), 2), lambda x: x, [IMAGE]),
    ("space_to_batch_nd", lambda x: relay.nn.batch_to_space_nd(
        relay.nn.space_to_batch_nd(x, (2, 3), ((1, 1), (0, 0))), (2, 3), ((1, 1), (0, 0))), lambda x: x, [X]),
    ("upsampling", lambda x: relay.nn.upsampling(x, 2, 3), lambda x: x.repeat(2, 2).repeat(3, 3), [IMAGE]),
    ("lrn", lambda x: relay.nn.lrn(x, size=3), lambda x: x / (2 + 1e-5 / 3 * sliding_window_view(
        np.pad(x**2, ((0, 0), (1, 1), (0, 0), (0, 0))), 3, 1).sum(-1)) ** 0.75, [IMAGE]),
    ("cross_entropy", relay.nn.cross_entropy, lambda p, t: -(np.log(p) * t).sum() / 4, [POSITIVE[0], POSITIVE[1]]),
    ("resize2d", lambda x: relay.image.resize2d(x, (14, 18), method="nearest_neighbor",
     coordinate_transformation_mode="asymmetric"), lambda x: x.repeat(2, 2).repeat(2, 3), [IMAGE]),
]  # fmt: skip

FAMILIES = {
    "elementwise": ELEMENTWISE,
    "reductions": REDUCTIONS,
    "shapes": SHAPES,
    "indexing": INDEXING,
    "nn": NETWORKS,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_operators_agree_with_numpy(family: str) -> None:
    cases = FAMILIES[family]
    variables, values, results = [], {}, []
    for number, (_, make, _, data) in enumerate(cases):
        own = []
        for position, array in enumerate(data):
            own.append(relay.var(f"x{number}_{position}", shape=array.shape, dtype=array.dtype.name))
            values[own[-1].name_hint] = array
        variables += own
        made = make(*own)
        results.append(list(made) if isinstance(made, relay.TupleWrapper) else [made])
    function = relay.Function(variables, relay.Tuple([value for row in results for value in row]))
    with build_options(BuildOptions(fp32_cast="none", device="neuron/inf2")):
        found = _flat(relay.create_executor(target="neuron").evaluate(function)(**values))
    for (name, _, wanted, data), row in zip(cases, results, strict=True):
        exact = wanted(*(array.astype("float64") if array.dtype == np.float32 else array for array in data))
        exact = _flat(exact if isinstance(exact, list | tuple) else [exact])
        for value in exact:
            actual = found.pop(0)
            assert actual.shape == np.shape(value), name
            # float32 arithmetic, and the tables that functions of the activation engine are evaluated by
            np.testing.assert_allclose(actual.astype("float64"), value, rtol=2e-5, atol=2e-5, err_msg=name)
        assert len(row) in (1, len(exact)), name
    assert not found


def _flat(values: object) -> list[NDArray]:
    if isinstance(values, list | tuple):
        return [part for value in values for part in _flat(value)]
    return [values.numpy() if hasattr(values, "numpy") else np.asarray(values)]


def test_every_operator_says_what_it_does() -> None:
    assert len(OPERATORS) > 150
    assert all(each.summary.endswith(".") for each in OPERATORS.values())
