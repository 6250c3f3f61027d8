"""Published sample kernels: where a checkout has each, its arguments, and what NumPy says it computes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray
SAMPLES, EARLIER = "nki-samples 2026-02", "nki-samples 2025-11"
NKIBENCH, ACCELOPT = "NKIBench", "AccelOpt samples"
# Relative L2 error that the dtypes explain: float32 sums of some thousand products; one rounding to float16 or
# bfloat16 in the end, or a chain of them.
FLOAT32, FLOAT16, BFLOAT16, CHAIN16 = 2e-5, 5e-4, 4e-3, 1e-2


@dataclass(frozen=True)
class Case:
    """A kernel of a corpus. `reference` takes the arguments, arrays in float64, and `calls` the function with them."""

    corpus: str
    name: str
    file: str  # the end of its path in a checkout
    function: str
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    reference: Callable[..., Any]
    tolerance: float = FLOAT32
    words: tuple[tuple[str, Any], ...] = ()
    grid: tuple[int, ...] = ()
    is_bare: bool = False  # the sample leaves it to the caller to make a kernel of the function


def normal(*shape: int, dtype: Any = np.float32) -> Callable[[np.random.Generator], Array]:
    """Normal numbers."""
    return lambda rng: rng.standard_normal(shape).astype(dtype)


def uniform(*shape: int, dtype: Any = np.float32) -> Callable[[np.random.Generator], Array]:
    """Numbers from -1 to 1."""
    return lambda rng: rng.uniform(-1, 1, shape).astype(dtype)


def each(*makers: Any) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    """Arguments from their makers, or as they are."""
    return lambda rng: tuple(make(rng) if callable(make) else make for make in makers)


def product(left: Array, right: Array) -> Array:
    """left.T @ right."""
    return left.T @ right


def average(x: Array, size: int) -> Array:
    """Means of square windows."""
    c, h, w = x.shape
    return x.reshape(c, h // size, size, w // size, size).mean((2, 4))


def turned(x: Array, shape: tuple[int, int]) -> Array:
    """Each row as a matrix, transposed."""
    return x.reshape(len(x), *shape).transpose(0, 2, 1).reshape(len(x), -1)


def attention(q: Array, k: Array, v: Array) -> Array:
    """softmax(q.T @ k) @ v.T."""
    scores = q.T @ k
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True) @ v.T


def mamba(delta: Array, u: Array, a: Array, b: Array, c: Array) -> Array:
    """The selective scan, step by step."""
    if delta.ndim == 3:
        return np.stack([mamba(delta[at], u[at], a, b[at], c[at]) for at in range(len(delta))])
    state, found = np.zeros(a.shape), np.empty(delta.shape)
    for at in range(delta.shape[1]):
        state = np.exp(delta[:, at, None] * a) * state + (delta[:, at] * u[:, at])[:, None] * b[:, at]
        found[:, at] = state @ c[:, at]
    return found


def rope(x: Array, cos: Array, sin: Array) -> Array:
    """Rotary positions by halves."""
    upper, lower = np.split(x, 2)
    return np.concatenate([upper * cos - lower * sin, lower * cos + upper * sin])


def largest(x: Array, size: int) -> Array:
    """Maxima of windows, one step apart."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size))
    return windows.max((2, 3))


def doubled(x: Array, axes: int) -> Array:
    """Linear interpolation to twice the size along the last axes."""
    for axis in range(x.ndim - axes, x.ndim):
        x = np.moveaxis(x, axis, -1)
        before = np.concatenate([x[..., :1], x[..., :-1]], -1)
        after = np.concatenate([x[..., 1:], x[..., -1:]], -1)
        x = np.stack([before / 4 + x * 3 / 4, x * 3 / 4 + after / 4], -1).reshape(*x.shape[:-1], -1)
        x = np.moveaxis(x, -1, axis)
    return x


def layer_norm(x: Array, epsilon: float, gamma: Array, beta: Array) -> Array:
    """Rows of mean 0 and variance 1, times gamma, plus beta."""
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + epsilon) * gamma + beta


def softmax(x: Array) -> Array:
    """Of rows."""
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def rms_norm(x: Array, weight: Array) -> Array:
    """Of rows."""
    return x / np.sqrt((x**2).mean(1, keepdims=True)) * weight


def self_attention(q: Array, k: Array, v: Array, is_causal: bool = False) -> Array:
    """softmax(q @ k.T / 8) @ v, by rows."""
    scores = q @ k.T * 0.125
    return softmax(np.where(np.tri(len(q)), scores, -9984.0) if is_causal else scores) @ v


def heads(attend: Callable[..., Array]) -> Callable[..., Array]:
    """The same for each of several heads [heads, rows, columns]."""
    return lambda *tensors: np.stack([attend(*each) for each in zip(*tensors, strict=True)])


def rotated(q: Array, k: Array, cos: Array, sin: Array) -> tuple[Array, Array]:
    """Rotary positions of q and k [rows, d] by halves."""
    return tuple(
        each * cos + np.concatenate([-each[..., half:], each[..., :half]], -1) * sin
        for each in (q, k)
        for half in (each.shape[-1] // 2,)
    )  # type: ignore[return-value]


def adaptive(x: Array, size: tuple[int, int]) -> Array:
    """Means of windows that cover [n, c, h, w] evenly."""
    found = np.empty((*x.shape[:2], *size))
    for at in np.ndindex(size):
        rows, columns = (slice(i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(at, x.shape[2:], size, strict=True))
        found[..., at[0], at[1]] = x[..., rows, columns].mean((2, 3))
    return found


def causal(q: Array, k: Array, v: Array) -> Array:
    """Attention of q, k [d, rows] and v [rows, d] in which a row sees those up to itself."""
    scores = q.T @ k / np.sqrt(len(q))
    return softmax(np.where(np.tri(len(scores)), scores, -np.inf)) @ v


def nearest(x: Array, shape: tuple[int, ...]) -> Array:
    """[n, h, w, c] at the nearest place below."""
    rows, columns = (np.arange(m) * n // m for n, m in zip(x.shape[1:3], shape[1:3], strict=True))
    return x[:, rows][:, :, columns]


def scattered(x: Array, source: Array) -> Array:
    """Each value of `source` added where its 3 x 3 window of x, two apart and padded by one, has its largest."""
    found = np.pad(np.zeros(x.shape), ((0, 0), (0, 0), (1, 1), (1, 1)))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    for i, j in np.ndindex(source.shape[2:]):
        window = padded[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3].reshape(*x.shape[:2], 9)
        at = window.argmax(-1)
        for n, c in np.ndindex(x.shape[:2]):
            found[n, c, 2 * i + at[n, c] // 3, 2 * j + at[n, c] % 3] += source[n, c, i, j]
    return found[:, :, 1:-1, 1:-1]


_BF16 = ml_dtypes.bfloat16
_MAMBA = each(
    lambda rng: rng.uniform(0, 1, (1, 256, 512)).astype(np.float32), uniform(1, 256, 512),
    lambda rng: -rng.uniform(0, 1, (256, 16)).astype(np.float32), uniform(1, 16, 512), uniform(1, 16, 512),
)  # fmt: skip
_TUTORIAL = "tutorials/"
_ATTENTION = _TUTORIAL + "attention_fwd_performance/attention_kernels.py"
_MATMUL = _TUTORIAL + "matrix_multiplication/matrix_multiplication_nki_kernels.py"
_LARGE = each(uniform(1024, 4096, dtype=_BF16), uniform(1024, 2048, dtype=_BF16))


def _attention(version: str) -> Case:
    seq = 128 if version in ("v1", "v2") else 512 if version == "v3" else 1024
    early = version in ("v1", "v2", "v3", "v4", "v5", "v6")
    arguments = each(*(uniform(128, seq) for _ in range(3)))
    return Case(SAMPLES, f"attn_fwd_{version}", _ATTENTION, f"attn_fwd_{version}", arguments, attention,
                FLOAT32 if early else CHAIN16)  # fmt: skip


def _accelopt(name: str) -> Case:
    return Case(ACCELOPT, name, f"samples/nki/{name}.py", "kernel",
                lambda rng: tuple(x[0] if x.ndim == 3 else x for x in _MAMBA(rng)), mamba)  # fmt: skip


CASES = (
    Case(SAMPLES, "tensor_add", "tensor_addition/tensor_addition_nki_kernels.py", "nki_tensor_add",
         each(uniform(256, 1024, dtype=np.float16), uniform(256, 1024, dtype=np.float16)), np.add, FLOAT16),
    Case(SAMPLES, "transpose2d", "transpose2d/transpose2d_nki_kernels.py", "tensor_transpose2D_kernel_",
         each(lambda rng: rng.integers(-100, 100, (5, 12)).astype(np.int8), (3, 4)), turned, 0.0),
    Case(SAMPLES, "average_pool2d", "average_pool2d/average_pool2d_nki_kernels.py", "tensor_avgpool_kernel",
         each(uniform(32, 24, 24), 2), average),
    Case(SAMPLES, "matmul basic", _MATMUL, "nki_matmul_basic_",
         each(uniform(128, 64, dtype=_BF16), uniform(128, 512, dtype=_BF16)), product, BFLOAT16),
    *(Case(SAMPLES, f"matmul {name}", _MATMUL, f"nki_matmul_{name}_", _LARGE, product, BFLOAT16)
      for name in ("tiled", "hoist_load", "block_free_dimension")),
    Case(SAMPLES, "matmul fully_optimized", _MATMUL, "nki_matmul_fully_optimized_", _LARGE, product, CHAIN16),
    *(Case(SAMPLES, f"mamba_{v}", "fused_mamba/mamba_nki_kernels.py", f"mamba_{v}", _MAMBA, mamba)
      for v in ("v1", "v2", "v3")),
    *(_attention(version) for version in
      ("v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v8a", "v9", "v10", "v11")),
    Case(SAMPLES, "contributed matmul", "contributed/matmul.py", "matmul",
         each(uniform(1024, 1024, dtype=np.float16), uniform(1024, 2048, dtype=np.float16)), product, CHAIN16,
         is_bare=True),
    Case(SAMPLES, "maxpooling", "contributed/maxpooling.py", "max_pooling_2d_stride_1",
         each(uniform(448, 448), 3), largest, 0.0),
    Case(SAMPLES, "interpolate_bilinear", "contributed/interpolate_bilinear_fwd.py", "interpolate_bilinear_2x_fwd",
         each(uniform(2, 64, 32, 32)), lambda x: doubled(x, 2)),
    Case(SAMPLES, "interpolate_trilinear", "contributed/interpolate_trilinear_fwd.py", "interpolate_trilinear_2x_fwd",
         each(uniform(1, 64, 8, 8, 8)), lambda x: doubled(x, 3)),
    Case(SAMPLES, "pipelined_attention", "contributed/pipelined_attention.py", "flash_fwd",
         each(uniform(1, 128, 16384, dtype=_BF16), uniform(1, 128, 16384, dtype=_BF16),
              uniform(1, 16384, 128, dtype=_BF16)),
         lambda q, k, v: attention(0.125 * q[0], k[0], v[0].T)[None], CHAIN16,
         (("softmax_scale", 0.125), ("use_causal_mask", False), ("mixed_precision", True)), grid=(1,)),
    *(_accelopt(f"mamba_{v}") for v in ("v1", "v2", "v3")),
    Case(ACCELOPT, "rope_optimized", "samples/nki/rope_optimized.py", "kernel",
         each(uniform(128, 4096), uniform(64, 4096), uniform(64, 4096)), rope),
    *(Case(EARLIER, f"layernorm {v}", "layernorm/layernorm_nki_kernel.py", f"nki_layernorm_kernel_{v}",
           each(uniform(300, 1280), 1e-5, uniform(1280), uniform(1280)), layer_norm) for v in ("v1", "v2")),
    Case(EARLIER, "rmsnorm", "rmsnorm/rmsnorm_nki_kernels.py", "nki_rmsnorm_kernel",
         each(uniform(250, 512), uniform(512)), rms_norm),
    Case(EARLIER, "softmax", "softmax/softmax_nki_kernels.py", "nki_softmax_kernel", each(uniform(300, 1000)), softmax),
    Case(EARLIER, "rotary", "rotary/rotary_nki_kernels.py", "nki_apply_rotary_embedding",
         each(uniform(1, 2, 200, 64), uniform(1, 2, 200, 64), uniform(1, 200, 64), uniform(1, 200, 64)),
         lambda *x: np.stack(rotated(x[0], x[1], x[2][:, None], x[3][:, None])), grid=(1, 2)),
    Case(EARLIER, "SD attention tutorial", "sd_attention/sd_attention_nki_kernels.py",
         "fused_self_attn_for_SD_small_head_size", each(*(uniform(512, 64) for _ in range(3)), True),
         self_attention, CHAIN16),
    *(Case(EARLIER, f"matmul {name}", _MATMUL, f"nki_matmul_{name}_", _LARGE, product, CHAIN16)
      for name in ("tiled", "hoist_load", "block_free_dimension", "fully_optimized")),
    Case(EARLIER, "matmul basic", _MATMUL, "nki_matmul_basic_",
         each(uniform(128, 64, dtype=_BF16), uniform(128, 512, dtype=_BF16)), product, BFLOAT16),
    Case(EARLIER, "add tutorial", "reference/tutorial.py", "add_kernel_nx8x128x512",
         each(uniform(2, 8, 128, 512), uniform(2, 8, 128, 512), 2 * 8 * 128 * 512), lambda a, b, _: a + b, grid=(2,)),
    Case(EARLIER, "SD attention reference", "reference/attention.py", "fused_self_attn_for_SD_small_head_size",
         each(uniform(1, 64, 512), uniform(1, 512, 64), uniform(1, 512, 64)),
         heads(lambda q, k, v: self_attention(q.T, k, v)), CHAIN16, grid=(1,)),
    Case(EARLIER, "flash_fwd", "reference/attention.py", "flash_fwd",
         each(uniform(1, 1, 128, 2048, dtype=_BF16), uniform(1, 1, 128, 2048, dtype=_BF16),
              uniform(1, 1, 2048, 128, dtype=_BF16), lambda rng: np.zeros(1, np.int32)),
         lambda q, k, v, _: causal(q[0, 0], k[0, 0], v[0, 0])[None, None], CHAIN16, grid=(1, 1)),
    Case(EARLIER, "allocated SD attention", "reference/allocated_attention.py",
         "allocated_fused_self_attn_for_SD_small_head_size",
         each(uniform(1, 128, 1024), uniform(1, 128, 1024), uniform(1, 1024, 128)),
         heads(lambda q, k, v: self_attention(q.T, k.T, v).T), CHAIN16, grid=(1,)),
    Case(EARLIER, "allocated rmsnorm_qkv", "reference/allocated_fused_linear.py", "allocated_fused_rms_norm_qkv",
         each(uniform(1, 512, 1024, dtype=_BF16), uniform(1024, 512, dtype=_BF16)),
         lambda x, w: (x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)) @ w, CHAIN16),
    Case(EARLIER, "adaptive_avg_pool2d", "reference/vision.py", "adaptive_avg_pool2d_kernel",
         each(uniform(1, 32, 20, 20), (6, 7)), adaptive),
    Case(EARLIER, "resize_nearest", "reference/vision.py", "resize_nearest_fixed_dma_kernel",
         each(uniform(2, 30, 20, 16), (2, 59, 38, 16)), nearest, 0.0),
    Case(EARLIER, "select_and_scatter", "reference/vision.py", "select_and_scatter_kernel",
         each(uniform(8, 64, 56, 56), uniform(8, 64, 28, 28)), scattered),
)  # fmt: skip
