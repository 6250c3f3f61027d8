"""Functions of JAX, each with arguments to run it with: one or more for every operator with a converter."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Function = tuple[Callable[..., Any], tuple[Any, ...]]
_RNG = np.random.default_rng(0)
KEY = np.array([3, 77], np.uint32)


def floats(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return _RNG.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    """Numbers from 0.1 to 2."""
    return _RNG.uniform(0.1, 2, shape).astype(np.float32)


def whole(below: int, *shape: int) -> np.ndarray:
    """int32 from 0."""
    return _RNG.integers(0, below, shape).astype(np.int32)


def truths(*shape: int) -> np.ndarray:
    """True or false."""
    return _RNG.integers(0, 2, shape).astype(bool)


_ROOT = floats(8, 8)
_POSITIVE_DEFINITE = _ROOT @ _ROOT.T / 8 + np.eye(8, dtype=np.float32)


def _conjugate_gradients(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Solves a x = b."""

    def step(state: tuple) -> tuple:
        x, rest, way, square, count = state
        image = a @ way
        length = square / (way @ image)
        rest = rest - length * image
        return x + length * way, rest, rest + rest @ rest / square * way, rest @ rest, count + 1

    def goes_on(state: tuple) -> jax.Array:
        return (state[3] > 1e-3) & (state[4] < 20)

    found = jax.lax.while_loop(goes_on, step, (jnp.zeros_like(b), b, b, b @ b, 0))
    return found[0], found[4]


def _nested(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    def shrunk(x: jax.Array) -> jax.Array:
        return jax.lax.while_loop(lambda y: y.sum() > 1, lambda y: y * 0.7, x + 2)

    return jax.lax.while_loop(lambda s: s[1] < x.max() * 9, lambda s: (shrunk(s[0]) * 1.01, s[1] + 0.3), (x, 0.0))


def _elementwise() -> dict[str, Function]:
    one = {
        name: (getattr(jnp, name), (floats(3, 5) * 2,))
        for name in ("abs", "ceil", "floor", "cos", "sin", "tan", "tanh", "exp", "expm1", "negative", "sign", "square",
                     "cbrt", "isfinite", "isnan", "isinf", "sinh", "cosh", "arctan", "arcsinh", "round")
    }  # fmt: skip
    domain = {
        name: (getattr(jnp, name), (positive(3, 5),)) for name in ("log", "log1p", "sqrt", "arccosh", "log2", "log10")
    }
    inner = {name: (getattr(jnp, name), (positive(3, 5) / 2.5 - 0.4,)) for name in ("arcsin", "arccos", "arctanh")}
    two = {
        name: (getattr(jnp, name), (floats(3, 5), positive(5)))
        for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder", "fmod", "arctan2",
                     "power",
                     "greater", "less_equal", "not_equal", "equal", "hypot", "logaddexp")
    }  # fmt: skip
    bits = {
        name: (getattr(jnp, name), (whole(99, 4), whole(9, 4))) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    }
    logic = {
        name: (getattr(jnp, name), (truths(6), truths(6))) for name in ("logical_and", "logical_or", "logical_xor")
    }
    return one | domain | inner | two | bits | logic | {
        "logical_not": (jnp.logical_not, (truths(6),)),
        "bitwise_not": (jnp.bitwise_not, (whole(99, 4),)),
        "bits_of_numbers": (lambda x: jax.lax.bitcast_convert_type(x, np.int32) & 255, (floats(4, 5),)),
        "erf_inv": (jax.scipy.special.erfinv,
                    (np.append(floats(40) % 2 - 1, [1 - 1e-6, -0.99999]).astype(np.float32),)),
        "random_uniform": (lambda key: jax.random.uniform(jax.random.wrap_key_data(key), (5, 7)), (KEY,)),
        "random_normal": (lambda key: jax.random.normal(jax.random.wrap_key_data(key), (6, 5)), (KEY,)),
        "random_split": (lambda key: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(key), 3)), (KEY,)),
        "random_bits": (lambda key: jax.lax.rng_bit_generator(key, (5, 3)),
                        (np.append(KEY, [5, 9]).astype(np.uint32),)),
        "random_bits_carried": (lambda key: jax.lax.rng_bit_generator(key, (9,)),
                                (np.append(KEY, [2**32 - 2, 2**32 - 1]).astype(np.uint32),)),
        "bits_of_another_width": (
            lambda x, y, z: tuple(jax.lax.bitcast_convert_type(*each) for each in (
                (x, np.uint8), (x, np.uint16), (y, np.int32), (z, np.float32))),
            (floats(3, 4), whole(256, 5, 4).astype(np.uint8), whole(30000, 3, 2).astype(np.uint16))),
        "random_permutation": (lambda key, x: jax.random.permutation(jax.random.wrap_key_data(key), x),
                               (KEY, floats(9, 2))),
        "random_categorical": (lambda key, x: jax.random.categorical(jax.random.wrap_key_data(key), x),
                               (KEY, floats(6, 7))),
        "random_choice": (lambda key: jax.random.choice(jax.random.wrap_key_data(key), 10, (5,), replace=False),
                          (KEY,)),
        "dropout": (lambda key, x: jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(key), 0.5, x.shape), x, 0),
                    (KEY, floats(6, 7))),
        "lgamma": (jax.scipy.special.gammaln, (np.append(floats(30) * 5, positive(9) * 20).astype(np.float32),)),
        "digamma": (jax.scipy.special.digamma, (positive(30) * 5,)),
        "polygamma": (lambda x: jax.scipy.special.polygamma(2, x), (positive(9) * 5,)),
        "zeta": (jax.scipy.special.zeta, (positive(9) * 5 + 1.1, positive(9) * 5)),
        "erfc": (lambda x: jnp.log(jax.scipy.special.erfc(x)), (floats(40) * 3,)),  # of which 1 - erf has lost the tail
        "i1e": (jax.scipy.special.i1e, (floats(20) * 9,)),
        "nextafter": (jnp.nextafter, (floats(20), floats(20))),
        "population_count": (lambda x, y: (jax.lax.population_count(x), jax.lax.population_count(y)),
                             (np.append(whole(2**30, 20) * -2, -1).astype(np.int32), whole(256, 20).astype(np.uint8))),
        "clz": (jax.lax.clz, (np.array([0, 1, 2, 255, 2**30, -1, -77], np.int32),)),
        "unsigned_negative": (lambda x, y: (-x, -y), (whole(99, 9).astype(np.uint8), whole(99, 9).astype(np.uint32))),
        "reduce_precision": (
            lambda x: tuple(jax.lax.reduce_precision(x, *bits) for bits in ((5, 10), (8, 7), (4, 3), (8, 23), (3, 23))),
            (np.concatenate([floats(60) * (10.0 ** (whole(14, 60) - 7)).astype(np.float32),
                             np.float32([0, -0.0, np.inf, -np.inf, np.nan, 65519, 65520, 1 + 2**-11, 1 + 3 * 2**-11])]),
             )),
        "shift_with_sign": (lambda x, n, y: (jax.lax.shift_right_arithmetic(x, n), jax.lax.shift_left(x, n),
                                             jax.lax.shift_right_arithmetic(y, y % 9)),
                            (whole(2**31 - 1, 40) * 2, whole(40, 40), whole(256, 20).astype(np.uint8))),
        "shift": (lambda x: (x << 3) + jax.lax.shift_right_logical(x, np.int32(2)), (whole(99, 4),)),
        "clamp": (lambda x: jnp.clip(x, -0.5, 0.5), (floats(3, 4),)),
        "rsqrt": (jax.lax.rsqrt, (positive(4),)),
        "erf": (jax.scipy.special.erf, (floats(4),)),
        "gelu": (lambda x: jax.nn.gelu(x, approximate=False), (floats(4, 4),)),
        "silu": (jax.nn.silu, (floats(4, 4),)),
        "sigmoid": (jax.lax.logistic, (floats(4, 4),)),
        "where": (lambda x, y: jnp.where(x > 0, x, y), (floats(3, 4), floats(4))),
        "cast": (lambda x: (x.astype(jnp.int32), x.astype(jnp.bfloat16).astype(jnp.float32), x > 0),
                 (floats(3, 4) * 9,)),
        "small_log1p": (jnp.log1p, (floats(20) * 1e-5,)),
        "small_expm1": (jnp.expm1, (floats(20) * 1e-5,)),
        "constants": (lambda x: x * jnp.array([1.5, 2.5, -1], jnp.float32) + jnp.full((2, 3), 2.0), (floats(2, 3),)),
        "bfloat16": (lambda x: (x.astype(jnp.bfloat16) * jnp.array([1.5, 2.5, -1], jnp.bfloat16)).astype(jnp.float32),
                     (floats(2, 3),)),
    }  # fmt: skip


def _shapes() -> dict[str, Function]:
    return {
        "broadcast": (lambda x, y: jnp.broadcast_to(x, (2, 3, 4)).sum() + y[:, None] * x, (floats(3, 4), floats(3))),
        "reshape": (lambda x: x.reshape(6, 4).T.reshape(2, -1), (floats(2, 3, 4),)),
        "transpose": (lambda x: x.transpose(2, 0, 1), (floats(2, 3, 4),)),
        "slice": (lambda x: x[1:, ::2], (floats(4, 7),)),
        "pad": (lambda x: jax.lax.pad(x, np.float32(2), ((1, 2, 0), (-1, 1, 2))), (floats(3, 4),)),
        "concatenate": (lambda x, y: jnp.concatenate([x, y, x], 1), (floats(2, 3), floats(2, 1))),
        "reverse": (lambda x: x[::-1, :][:, ::-1], (floats(3, 4),)),
        "iota": (lambda x: x + jnp.arange(4.0) + jax.lax.broadcasted_iota(jnp.float32, (3, 4), 0), (floats(3, 4),)),
        "tile": (lambda x: jnp.tile(x, (2, 3)), (floats(2, 3),)),
        "repeat": (lambda x: jnp.repeat(x, 2, 0), (floats(2, 3),)),
        "tri": (lambda x: jnp.tril(x) + jnp.triu(x, 1), (floats(4, 4),)),
    }


def _conv(x: Any, w: Any, *args: Any, **kwargs: Any) -> Any:
    return jax.lax.conv_general_dilated(x, w, *args, **kwargs)


def _products() -> dict[str, Function]:
    nhwc = ("NHWC", "HWIO", "NHWC")
    return {
        "matmul": (jnp.matmul, (floats(3, 8), floats(8, 5))),
        "matmul_turned": (lambda x, w: x @ w.T, (floats(2, 3, 8), floats(5, 8))),
        "batched": (lambda x, y: jnp.einsum("bhqd,bhkd->bhqk", x, y), (floats(2, 3, 4, 8), floats(2, 3, 5, 8))),
        "einsum": (lambda x, y: jnp.einsum("abc,cdb->ad", x, y), (floats(2, 3, 4), floats(4, 5, 3))),
        "outer": (jnp.outer, (floats(3), floats(4))),
        "conv": (lambda x, w: _conv(x, w, (2, 1), "SAME", dimension_numbers=nhwc),
                 (floats(2, 9, 8, 3), floats(3, 3, 3, 4))),
        "conv_dilated": (lambda x, w: _conv(x, w, (1,), ((2, 1),), rhs_dilation=(2,)),
                         (floats(2, 3, 9), floats(4, 3, 3))),
        "conv_grouped": (lambda x, w: _conv(x, w, (1, 1), "VALID", feature_group_count=2),
                         (floats(1, 4, 6, 6), floats(6, 2, 3, 3))),
        "conv_spread": (lambda x, w: _conv(x, w, (1, 1), ((1, 2), (0, 3)), lhs_dilation=(2, 3)),
                        (floats(1, 3, 4, 5), floats(4, 3, 3, 2))),
        "conv_spread_and_strided": (lambda x, w: _conv(x, w, (2,), ((1, 1),), lhs_dilation=(3,)),
                                    (floats(1, 3, 6), floats(4, 3, 3))),
        "conv_cut": (lambda x, w: _conv(x, w, (1,), ((-1, -2),)), (floats(1, 3, 9), floats(4, 3, 3))),
        "conv_of_batch": (lambda x, w: _conv(x, w, (1, 1), "VALID", batch_group_count=2),
                          (floats(4, 3, 6, 6), floats(6, 3, 3, 3))),
        "conv_transpose": (lambda x, w: jax.lax.conv_transpose(x, w, (2, 2), "SAME"),
                           (floats(1, 5, 5, 3), floats(3, 3, 3, 4))),
        "conv_gradients": (jax.grad(lambda x, w: (_conv(x, w, (2, 2), "SAME") ** 2).sum(), (0, 1)),
                           (floats(2, 3, 8, 8), floats(4, 3, 3, 3))),
        "depthwise_gradients": (jax.grad(lambda x, w: (_conv(x, w, (1, 1), "SAME", feature_group_count=3) ** 2).sum(),
                                         (0, 1)), (floats(2, 3, 6, 6), floats(6, 1, 3, 3))),
    }  # fmt: skip


def _max_pool(x: Any) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "SAME")


def _reductions() -> dict[str, Function]:
    return {
        "sum": (lambda x: x.sum((0, 2)), (floats(2, 3, 4),)),
        "max": (lambda x: x.max(1), (floats(2, 3, 4),)),
        "prod": (lambda x: x.prod(-1), (floats(2, 3, 4),)),
        "min_of_integers": (lambda x: x.min(), (whole(99, 3, 4),)),
        "all_any": (lambda x: (x.all(0), x.any(1)), (truths(3, 4),)),
        "argmax": (lambda x: (x.argmax(-1), x.argmin(0)), (floats(3, 7),)),
        "softmax": (lambda x: jax.nn.softmax(x), (floats(3, 7),)),
        "logsumexp": (lambda x: jax.nn.logsumexp(x, 1), (floats(3, 7) * 50,)),
        "mean_var": (lambda x: (x.mean(0), x.var(1)), (floats(3, 7),)),
        "max_pool": (lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
                     (floats(2, 7, 8, 3),)),
        "sum_pool": (lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
                     (floats(2, 6, 8, 3),)),
        "min_windows": (lambda x: jax.lax.reduce_window(x, jnp.inf, jax.lax.min, (2, 2), (1, 1), "SAME"),
                        (floats(4, 5),)),
        "cumsum": (lambda x: jnp.cumsum(x, 1), (floats(3, 7),)),
        "cummax": (lambda x: jax.lax.cummax(x, 0), (floats(5, 4),)),
        "cummin_of_integers": (lambda x: jax.lax.cummin(x, 1, reverse=True), (whole(9, 3, 11),)),
        "cumlogsumexp": (lambda x: jax.lax.cumlogsumexp(x, 1), (floats(3, 13),)),
        "combined_by_any": (lambda x: jax.lax.reduce(x, -np.inf, jnp.logaddexp, (0, 2)), (floats(3, 4, 7),)),
        "combined_in_order": (  # products of affine functions, which don't commute
            lambda x, y: jax.lax.reduce((x, y), (np.float32(1), np.float32(0)),
                                        lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (1,)),
            (floats(4, 7), floats(4, 7))),
        "parity": (lambda x, y: (jax.lax.reduce(x, np.int32(0), jax.lax.bitwise_xor, (1,)),
                                 jax.lax.reduce(y, False, jax.lax.bitwise_xor, (0,))), (whole(99, 3, 5), truths(7, 4))),
        "windows_by_any": (
            lambda x: jax.lax.reduce_window(x, -np.inf, jnp.logaddexp, (2, 5), (2, 1), ((1, 0), (0, 3)),
                                            window_dilation=(1, 2)), (floats(5, 9),)),
        "windows_of_two": (
            lambda x, y: jax.lax.reduce_window((x, y), (-np.inf, np.inf), lambda a, b: (jnp.maximum(a[0], b[0]),
                                               jnp.minimum(a[1], b[1])), (2, 3), (2, 1), "SAME"),
            (floats(5, 7), floats(5, 7))),
        "windows_of_truths": (lambda x: jax.lax.reduce_window(x, False, jax.lax.bitwise_or, (2, 2), (1, 1), "VALID"),
                              (truths(4, 5),)),
        "pool_gradient": (jax.grad(lambda x: (_max_pool(x) ** 2).sum()), (floats(1, 2, 7, 7),)),
    }  # fmt: skip


def _positions() -> dict[str, Function]:
    return {
        "rows": (lambda x, i: x[i], (floats(6, 4), whole(6, 2, 3))),
        "columns": (lambda x, i: x[:, i], (floats(6, 4), whole(4, 3))),
        "pairs": (lambda x, i, j: x[i, :, j], (floats(6, 4, 5), whole(6, 3), whole(5, 3))),
        "take_along": (lambda x, i: jnp.take_along_axis(x, i, 1), (floats(3, 6), whole(6, 3, 2))),
        "clipped": (lambda x, i: jnp.take(x, i - 2, 0, mode="clip"), (floats(3, 4), whole(9, 5))),
        "filled": (lambda x, i: jnp.nan_to_num(jnp.take(x, i, 0, mode="fill")), (floats(3, 4), whole(9, 5))),
        "windows": (lambda x, i: jax.vmap(lambda j: jax.lax.dynamic_slice(x, (j, 1), (2, 3)))(i),
                    (floats(6, 5), whole(7, 3))),
        "dynamic_slice": (lambda x, i: jax.lax.dynamic_slice(x, (i[0], 1), (2, 3)), (floats(6, 5), whole(9, 1))),
        "dynamic_update": (lambda x, y, i: jax.lax.dynamic_update_slice(x, y, (i[0], i[1])),
                           (floats(6, 5), floats(2, 3), whole(9, 2))),
        "add_at": (lambda x, i, y: x.at[i].add(y), (floats(6, 4), whole(6, 5), floats(5, 4))),
        "set_at": (lambda x, y: x.at[jnp.array([3, 1])].set(y), (floats(6, 4), floats(2, 4))),
        "max_at": (lambda x, i, y: x.at[:, i].max(y), (floats(3, 6), whole(6, 2), floats(3, 2))),
        "dropped": (lambda x, i, y: x.at[i].add(y, mode="drop"), (floats(3, 4), whole(7, 5), floats(5, 4))),
        "embedding_gradient": (jax.grad(lambda x, i: (x[i] ** 2).sum()), (floats(6, 4), whole(6, 7))),
        "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), -jnp.sort(-x)), (floats(5, 6),)),
        "sort_pairs": (lambda x, y: jax.lax.sort((x, y), num_keys=1), (floats(9), floats(9))),
        "sort_by_several": (lambda x, y, z: jax.lax.sort((x, y, z), dimension=0, num_keys=2),
                            (whole(3, 9, 2), (whole(3, 9, 2) / 2).astype(np.float32), floats(9, 2))),
        "lexsort": (lambda x, y, z: jnp.lexsort((x, y, z)), (whole(2, 12), whole(2, 12), whole(2, 12))),
        "top_k": (lambda x: jax.lax.top_k(x, 3), (floats(2, 8),)),
    }  # fmt: skip


def _control() -> dict[str, Function]:
    return {
        "scan": (lambda c, x: jax.lax.scan(lambda c, t: (c * 0.9 + t, c.sum()), c, x), (floats(4), floats(5, 4))),
        "scan_backwards": (lambda x: jax.lax.scan(lambda c, t: (c + t, c), 0.0, x, reverse=True), (floats(5),)),
        "fori": (lambda x: jax.lax.fori_loop(2, 7, lambda i, c: c + x[i], 0.0), (floats(9),)),
        "while": (lambda x: jax.lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 1.5 + 1, x), (positive(4),)),
        "while_in_a_while": (_nested, (positive(3) / 9,)),
        "while_of_several": (_conjugate_gradients, (_POSITIVE_DEFINITE, floats(8))),
        "while_not_once": (lambda x: jax.lax.while_loop(lambda c: c.sum() < 0, lambda c: c * 2, x), (positive(4),)),
        "fori_by_data": (lambda x, n: jax.lax.fori_loop(0, n, lambda i, c: c * 0.9 + i, x), (floats(9), np.int32(13))),
        "fori_of_many_rounds": (lambda x: jax.lax.fori_loop(0, 9999, lambda i, c: c * 0.999 + 1, x), (floats(3),)),
        "cond": (lambda x: jax.lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, x), (floats(3, 4),)),
        "switch": (
            lambda i, x: jax.lax.switch(i[0], [jnp.sin, jnp.cos, jnp.tanh], x),
            (
                whole(5, 1),
                floats(4),
            ),
        ),
        "map": (lambda x: jax.lax.map(lambda r: r / r.sum(), x), (positive(4, 3),)),
        "jit": (lambda x: jax.jit(jnp.sin)(x) + jax.nn.relu(x), (floats(3),)),
        "custom_gradient": (jax.grad(lambda x: jax.nn.relu(x).sum()), (floats(7),)),
        "remat": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), (floats(7),)),
    }


FUNCTIONS: dict[str, Function] = {
    **_elementwise(), **_shapes(), **_products(), **_reductions(), **_positions(), **_control(),
}  # fmt: skip
