"""Published sample kernels: where a checkout has each, its arguments, and what NumPy says it computes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray
SAMPLES, NKIBENCH, ACCELOPT = "nki-samples 2026-02", "NKIBench", "AccelOpt samples"
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
         each(uniform(1, 1, 128, 4096, dtype=_BF16), uniform(1, 1, 128, 4096, dtype=_BF16),
              uniform(1, 1, 4096, 128, dtype=_BF16)),
         lambda q, k, v: attention(q[0, 0], k[0, 0], v[0, 0].T)[None, None], CHAIN16, grid=(1,)),
    *(_accelopt(f"mamba_{v}") for v in ("v1", "v2", "v3")),
    Case(ACCELOPT, "rope_optimized", "samples/nki/rope_optimized.py", "kernel",
         each(uniform(128, 4096), uniform(64, 4096), uniform(64, 4096)), rope),
)  # fmt: skip
