"""Modules of Relax's own operators, as scripts and TVM's importers write them: every operator, on core or CPU.

ONNX's importer never makes many of these forms: a batch norm in training, an average without the padding of dilated
windows and resizes with positions in float32 were wrong in silence until they were compared here.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tvm import relax

from tests.relax_modules.cases import Case, check, fractions, normal, positive, results, truths, whole

OP, NN = relax.op, relax.op.nn
SIZES = (9, 8, 7)
WINDOW = {1: (3,), 2: (3, 2), 3: (2, 3, 2)}


def elementwise() -> Iterator[Case]:
    plain = "abs atan asinh ceil cos erf exp floor negative round sigmoid sign sin square tanh trunc tan cosh sinh"
    domains = {plain: normal, "log sqrt rsqrt": positive, "acos asin atanh": fractions, "isfinite isinf isnan": normal}
    for names, inputs in domains.items():
        for name in names.split():
            yield Case(name, getattr(OP, name), (inputs(5, 37),))
    pairs = "add subtract multiply divide maximum minimum equal not_equal greater greater_equal less less_equal atan2"
    for name in f"{pairs} log_add_exp floor_divide floor_mod mod".split():
        yield Case(name, getattr(OP, name), (normal(3, 1, 7), normal(4, 7)))
    yield Case("power", OP.power, (positive(3, 7), normal(3, 7)))
    yield Case("where", OP.where, (truths(4, 5), normal(4, 5), normal(4, 5)))


def integers() -> Iterator[Case]:
    names = "add subtract multiply maximum minimum bitwise_and bitwise_or bitwise_xor left_shift right_shift"
    for name in names.split():
        pair = (whole(3, 7, low=1, high=20, dtype="int32"), whole(3, 7, low=1, high=9, dtype="int32"))
        yield Case(name, getattr(OP, name), pair)
    for name in ["floor_divide", "floor_mod", "mod"]:
        dividend, divisor = whole(3, 7, low=-20, high=20, dtype="int32"), whole(3, 7, low=1, high=9, dtype="int32")
        yield Case(name, getattr(OP, name), (dividend, divisor))
        yield Case(f"{name} by negative numbers", getattr(OP, name), (dividend, -divisor))
    for name in ["logical_and", "logical_or", "logical_xor"]:
        yield Case(name, getattr(OP, name), (truths(3, 7), truths(3, 7)))
    for source, target in (
        ("float32", "int32"), ("float32", "float16"), ("float32", "bool"), ("int64", "int32"), ("int32", "float32"),
    ):  # fmt: skip
        data = (normal(5, 9) * 5 if source == "float32" else whole(5, 9, high=100)).astype(source)
        yield Case(f"{source} as {target}", lambda x, target=target: OP.astype(x, target), (data,))


def reductions() -> Iterator[Case]:
    for name in ["sum", "mean", "max", "min", "prod", "std", "variance"]:
        for axes in (None, 1, [0, 2]):
            yield Case(
                f"{name} {axes}", lambda x, n=name, a=axes: getattr(OP, n)(x, a, keepdims=a == 1), (normal(4, 5, 6),)
            )
    for name in ("argmax", "argmin", "median"):
        yield Case(name, lambda x, n=name: getattr(OP, n)(x, 1), (normal(4, 5, 6),))
    for name in ("cumsum", "cumprod"):
        for axis, exclusive in ((None, False), (0, True), (1, False)):
            build = lambda x, n=name, a=axis, e=exclusive: getattr(OP, n)(x, a, exclusive=e)  # noqa: E731
            yield Case(f"{name} {axis} {exclusive}", build, (normal(5, 6),))
    yield Case("topk", lambda x: OP.topk(x, 3, 1, "both", True), (normal(5, 16),))
    yield Case("sort", lambda x: OP.sort(x, 0), (normal(5, 16),))


def moves() -> Iterator[Case]:
    builds: dict[str, Callable[..., relax.Expr]] = {
        "broadcast_to": lambda x: OP.broadcast_to(x, (3, 6, 4)), "flip": lambda x: OP.flip(x, 1),
        "permute_dims": lambda x: OP.permute_dims(x), "reshape": lambda x: OP.reshape(x, (3, -1, 2)),
        "repeat": lambda x: OP.repeat(x, 3, 0), "repeat all": lambda x: OP.repeat(x, 2),
        "split at": lambda x: OP.split(x, [1, 3], 1), "split in parts": lambda x: OP.split(x, 3, 0),
        "slice": lambda x: OP.strided_slice(x, [0], [5], [0], [-2]), "tile": lambda x: OP.tile(x, (2, 1, 3)),
        "tril": lambda x: OP.tril(x, 1), "triu": lambda x: OP.triu(x, -1),
        "layout_transform": lambda x: OP.layout_transform(x, lambda a, b: (b // 2, a, b % 2)),
        "reflect": lambda x: NN.pad(x, (0, 0, 1, 2), "reflect"),
        "circular": lambda x: NN.pad(x, (0, 0, 1, 2), "circular"),
        "replicate": lambda x: NN.pad(x, (0, 0, 1, 2), "replicate"),
    }  # fmt: skip
    for name, build in builds.items():
        yield Case(name, build, (normal(6, 4),))


def gathers() -> Iterator[Case]:
    for mode in ("fast", "clip", "wrap"):
        places = whole(3, 2, low=0 if mode == "fast" else -4, high=5)
        yield Case(f"take {mode}", lambda x, i, mode=mode: OP.take(x, i, 0, mode), (normal(5, 6), places))
    yield Case("gather_elements", lambda x, i: OP.gather_elements(x, i, 1), (normal(4, 6), whole(4, 3, high=6)))
    yield Case("gather_nd", lambda x, i: OP.gather_nd(x, i, 1), (normal(4, 6), whole(4, 3, 1, high=4)))
    yield Case("index", lambda x, i, j: OP.index_tensor(x, [i, j]), (normal(4, 6), whole(5, high=4), whole(5, high=6)))
    for reduction in ("update", "add", "mul", "max", "min"):
        rows = np.stack([np.random.default_rng(column).permutation(5)[:3] for column in range(4)], 1)
        yield Case(
            f"scatter_elements {reduction}",
            lambda x, i, u, r=reduction: OP.scatter_elements(x, i, u, 0, r),
            (normal(5, 4), rows, normal(3, 4)),
        )
    lengths = whole(4, low=1, high=6, dtype="int32")
    yield Case("reverse_sequence", lambda x, n: OP.reverse_sequence(x, n, 1, 0), (normal(4, 6), lengths))


def windows() -> Iterator[Case]:
    for rank, window in WINDOW.items():
        data = normal(2, 3, *SIZES[:rank])
        for stride, padding, dilation, is_up in ((1, 0, 1, False), (2, 1, 1, True), (1, 1, 2, False)):
            name, form = f"{rank} {stride} {padding} {dilation}", (window, stride, padding, dilation, is_up)
            pool = getattr(NN, f"max_pool{rank}d")
            yield Case(f"max_pool {name}", lambda x, pool=pool, form=form: pool(x, *form), (data,))
            for counted in (False, True):
                mean = getattr(NN, f"avg_pool{rank}d")
                build = lambda x, mean=mean, form=form, counted=counted: mean(x, *form, counted)  # noqa: E731
                yield Case(f"avg_pool {name} {counted}", build, (data,))


def convolutions() -> Iterator[Case]:
    for rank, window in WINDOW.items():
        for stride, padding, dilation, groups in ((1, 0, 1, 1), (2, 1, 1, 3), (1, 2, 2, 1)):
            form = (stride, padding, dilation, groups)
            conv = getattr(NN, f"conv{rank}d")
            operands = (normal(2, 6, *SIZES[:rank]), normal(9, 6 // groups, *window))
            yield Case(f"conv{rank}d {form}", lambda x, w, conv=conv, form=form: conv(x, w, *form), operands)
        back = getattr(NN, f"conv{rank}d_transpose")
        operands = (normal(2, 6, *(4, 5, 3)[:rank]), normal(6, 3, *window))
        yield Case(f"conv{rank}d_transpose", lambda x, w, back=back: back(x, w, 2, 1, 1, 1, 3), operands)
    yield Case(
        "NHWC", lambda x, w: NN.conv2d(x, w, 1, 1, 1, 1, "NHWC", "HWIO"), (normal(2, 8, 9, 6), normal(3, 3, 6, 5))
    )


def norms() -> Iterator[Case]:
    statistics = (normal(2, 4, 5, 5), normal(4), normal(4), normal(4), positive(4))
    for training in (False, True):
        build = lambda *x, training=training: NN.batch_norm(*x, 1, training=training)  # noqa: E731
        yield Case(f"batch_norm, training={training}", build, statistics)
    yield Case("layer_norm", lambda x, g, b: NN.layer_norm(x, g, b, [-1]), (normal(2, 4, 8), normal(8), normal(8)))
    grouped = (normal(2, 4, 5, 6), normal(4), normal(4))
    yield Case("group_norm", lambda x, g, b: NN.group_norm(x, g, b, 2, 1, [2, 3]), grouped)
    yield Case("instance_norm", lambda x, g, b: NN.instance_norm(x, g, b, 1, [2, 3]), grouped)
    yield Case("rms_norm", lambda x, g: NN.rms_norm(x, g, [-1]), (normal(2, 4, 8), normal(8)))
    for name in ("softmax", "log_softmax"):
        yield Case(name, lambda x, name=name: getattr(NN, name)(x, 1), (normal(4, 5, 6),))
    for name in ["relu", "relu6", "silu", "gelu", "gelu_tanh", "selu"]:
        yield Case(name, getattr(NN, name), (normal(4, 9),))
    heads = (normal(2, 5, 3, 8), normal(2, 7, 3, 8), normal(2, 7, 3, 8))
    yield Case("attention", lambda q, k, v: NN.attention(q, k, v, causal_mask="BottomRight"), heads)


def images() -> Iterator[Case]:
    for method, rounding in (
        ("nearest_neighbor", "round"),
        ("nearest_neighbor", "ceil"),
        ("linear", ""),
        ("cubic", ""),
    ):
        for places in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
            for size in ((20, 24), (5, 6)) if method != "cubic" else ((5, 24),):
                given = {
                    "method": method, "coordinate_transformation_mode": places, "rounding_method": rounding
                }  # fmt: skip
                build = lambda x, size=size, given=given: OP.image.resize2d(x, size, **given)  # noqa: E731
                yield Case(f"resize2d {method} {rounding} {places} {size}", build, (normal(1, 3, 9, 11),))
    corners = np.float32([[0, 0.5, 0.7, 6, 7], [1, 2, 1, 7.5, 8]])
    align = lambda x, r: OP.vision.roi_align(x, r, (3, 2), 0.8, 2, False, "NCHW", "avg")  # noqa: E731
    yield Case("roi_align", align, (normal(2, 3, 9, 9), corners))


@pytest.mark.slow
@pytest.mark.parametrize(
    "family", [elementwise, integers, reductions, moves, gathers, windows, convolutions, norms, images]
)
def test_every_operator_gives_what_tvm_gives(family: Callable[[], Iterator[Case]]) -> None:
    check(list(family()), 2e-5)  # float32 throughout, with the functions of ACT: some units of 1e-6


def test_forms_that_no_importer_of_ours_makes() -> None:
    found = [next(case for case in norms() if "training=True" in case.name)]
    found += [case for case in windows() if case.name == "avg_pool 1 1 1 2 False"]
    found += [case for case in images() if "linear" in case.name and "(5, 6)" in case.name][:2]
    assert len(found) == 4
    check(found, 2e-5)


def test_operators_for_which_tvm_has_no_kernel() -> None:
    data = normal(2, 8, 3, 4)
    (found,) = results(Case("pixel_shuffle", lambda x: NN.pixel_shuffle(x, 2), (data,)))
    apart = data.reshape(2, 2, 2, 2, 3, 4).transpose(0, 1, 4, 2, 5, 3)  # channels, r, r, height, width
    np.testing.assert_array_equal(found, apart.reshape(2, 2, 6, 8))
    x, y, z = normal(4, 5), normal(4, 5), normal(4, 5)
    (found,) = results(Case("ewise_fma", OP.ewise_fma, (x, y, z)))
    np.testing.assert_allclose(found, x * y + z, rtol=1e-6, atol=1e-6)
