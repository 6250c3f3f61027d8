"""Kernels of nki-library: arguments of each and what NumPy says it computes; and which do not run on the model, why.

The library is a package that imports itself: `folder_of` finds it in a checkout. References are in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import tvm_neuron.nki.isa as nisa
import tvm_neuron.nki.language as nl
from benchmarks.nki_cases import BFLOAT16, CHAIN16, FLOAT16, FLOAT32, Array, layer_norm, rms_norm, softmax
from tvm_neuron.nki.trace import USUAL_CHIP

LIBRARY = "nki-library 2026-04"
_BF16, _F8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3
_E4M3 = 2**-4  # one rounding to 4 significant bits


@dataclass(frozen=True)
class Entry:
    """A kernel: `make` gives its arguments, those by name, and what it should return."""

    name: str
    module: str
    function: str
    make: Callable[[np.random.Generator, Callable[[str], Any]], tuple[tuple[Any, ...], dict[str, Any], Any]]
    tolerance: float = FLOAT32
    compared: Callable[[Any], Any] = field(default=lambda found: found)
    called: Callable[[Callable[[str], Any]], Callable[..., Any]] | None = None  # where it needs a kernel around it
    chip: str = USUAL_CHIP


def folder_of(folder: Path) -> Path | None:
    """Where `import nkilib` finds the package, below a folder of checkouts."""
    return next((path.parent for path in sorted(folder.rglob("nkilib/core")) if path.is_dir()), None)


def member(module: str, name: str) -> Any:
    """What a module of the library has under a name."""
    return getattr(import_module(f"nkilib.{module}"), name)


def _normal(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def _wide(*arrays: Array) -> list[Array]:
    return [each.astype(np.float64) for each in arrays]


def _cumsum(rng: np.random.Generator, _: Any) -> Any:
    x = _normal(rng, 130, 2500)
    return (x,), {}, np.cumsum(x.astype(np.float64), -1)


def _rope(is_contiguous: bool) -> Any:
    def make(rng: np.random.Generator, _: Any) -> Any:
        given = [_normal(rng, *shape, dtype=_BF16) for shape in ((128, 2, 4, 64), (64, 2, 64), (64, 2, 64))]
        x, cos, sin = _wide(*given)
        cos, sin = cos[:, :, None], sin[:, :, None]
        low, high = (x[:64], x[64:]) if is_contiguous else (x[::2], x[1::2])
        halves = [low * cos - high * sin, high * cos + low * sin]
        wanted = np.concatenate(halves) if is_contiguous else np.stack(halves, 1).reshape(x.shape)
        return tuple(given), {"contiguous_layout": is_contiguous, "relayout_in_sbuf": not is_contiguous}, wanted

    return make


def _rope_rows(rng: np.random.Generator, _: Any) -> Any:
    shapes = (1, 4, 256, 128), (1, 2, 256, 128), (256, 128), (256, 128)
    q, k, cos, sin = (_normal(rng, *shape, dtype=_BF16) for shape in shapes)

    def turned(x: Array) -> Array:
        wide, c, s = _wide(x, cos, sin)
        found: Array = wide * c + np.concatenate([-wide[..., 64:], wide[..., :64]], -1) * s
        return found

    return (q, k, np.zeros_like(q), np.zeros_like(k), cos, sin), {}, (turned(q), turned(k))


def _cascaded_max(rng: np.random.Generator, _: Any) -> Any:
    x = _normal(rng, 2, 3, 4058)
    return (x,), {}, (x.max(-1)[..., None], x.argmax(-1)[..., None])


def _depthwise_conv(rng: np.random.Generator, _: Any) -> Any:
    x, filters = _normal(rng, 2, 256, 1, 300), _normal(rng, 256, 1, 1, 4)
    windows = np.lib.stride_tricks.sliding_window_view(x[:, :, 0].astype(np.float64), 4, -1)
    wanted = np.einsum("bclj,cj->bcl", windows, filters[:, 0, 0])
    return (x, filters), {"feature_group_count": 256}, wanted[:, :, None]


def _conv(rng: np.random.Generator, _: Any) -> Any:
    x, filters = _normal(rng, 2, 64, 100), _normal(rng, 3, 64, 32)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), 3, -1)
    return (x, filters), {}, np.einsum("bclj,jco->bol", windows, filters)


def _logits(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    x, targets = _normal(rng, 64, 2000), rng.integers(0, 2000, 64).astype(np.int32)
    return x, targets, np.log(np.exp(x.astype(np.float64)).sum(-1))


def _cross_entropy(rng: np.random.Generator, _: Any) -> Any:
    x, targets, total = _logits(rng)
    words = {"positions_per_batch": 32, "chunk_size": 1024, "dtype": np.dtype(np.float32)}
    return (x, targets), words, (total - x[np.arange(64), targets], total)


def _cross_entropy_backward(rng: np.random.Generator, _: Any) -> Any:
    x, targets, total = _logits(rng)
    wanted = np.exp(x - total[:, None])
    wanted[np.arange(64), targets] -= 1
    return (x, targets, total.astype(np.float32), "sum", 32, 1024, np.dtype(np.float32), False), {}, wanted


def _projection(layout: str, *sizes: int) -> Any:
    def make(rng: np.random.Generator, _: Any) -> Any:
        attention, weight = _normal(rng, *sizes, dtype=_BF16), _normal(rng, 512, 1024, dtype=_BF16)
        wanted = np.einsum(layout, attention.astype(np.float64), weight.astype(np.float64).reshape(4, 128, 1024))
        return (attention, weight), {}, wanted

    return make


def _attention(rng: np.random.Generator, _: Any) -> Any:
    q, k, v = (_normal(rng, *shape, dtype=_BF16) for shape in ((1, 512, 128), (1, 128, 512), (1, 512, 128)))
    (wide_q,), (wide_k,), (wide_v,) = _wide(q, k, v)
    scores = np.where(np.tri(512), wide_q @ wide_k / 8, -np.inf)
    return (q, k, v), {"scale": 0.125}, (softmax(scores) @ wide_v)[None]


def _few_rows(rng: np.random.Generator, get: Callable[[str], Any]) -> Any:
    """Attention of few new rows with many before, whose last ones are those of the new."""
    batch, heads, rows, before, width = 2, 4, 4, 512, 128
    sizes = (width, batch * heads * rows), (width, batch * rows), (batch, 1, rows, width), (batch, 1, width, before)
    q, k_new, v_new, k = (_normal(rng, *shape, dtype=_BF16) for shape in sizes)
    q, v = (q * 0.0625).astype(_BF16), _normal(rng, batch, 1, before, width, dtype=_BF16)
    mask = np.ones((before, batch, heads, rows), np.uint8)
    for row in range(rows):
        mask[before - rows + row + 1 :, :, :, row] = 0
    wide_q, every_k, every_v = _wide(q.reshape(width, batch, heads, rows), k[:, 0], v[:, 0])
    every_k[:, :, -rows:] = k_new.reshape(width, batch, rows).transpose(1, 0, 2)
    every_v[:, -rows:] = v_new[:, 0]
    scores = np.where(mask.transpose(1, 2, 3, 0), np.einsum("dbhs,bdp->bhsp", wide_q, every_k), -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = np.einsum("bhsp,bpd->bhds", powers / powers.sum(-1, keepdims=True), every_v)
    how = get("core.attention.attention_tkg_utils").AttnTKGConfig(
        bs=batch, q_head=heads, s_active=rows, curr_sprior=before, full_sprior=before, d_head=width, qk_in_sb=True
    )
    return (q, k_new, v_new, k, v, mask, how), {}, wanted


def _few_rows_from_device(get: Callable[[str], Any]) -> Callable[..., Any]:
    """The kernel takes some of its operands in SBUF, from a manager of its room: what a caller does before."""

    def attention(q: Any, k_new: Any, v_new: Any, k: Any, v: Any, mask: Any, how: Any) -> Any:
        room = get("core.utils.allocator").SbufManager(0, 160 * 1024)
        room.open_scope()
        out = nl.ndarray((how.bs, how.q_head, how.d_head, how.s_active), q.dtype, buffer=nl.shared_hbm)
        near = [room.alloc_stack(each.shape, dtype=each.dtype, buffer=nl.sbuf) for each in (q, k_new)]
        for tile, each in zip(near, (q, k_new), strict=True):
            nisa.dma_copy(tile, each)
        found, _ = get("core.attention.attention_tkg").attention_tkg(*near, v_new, k, v, mask, out, how, room)
        room.close_scope()
        return found

    return attention


def _attention_backward(rng: np.random.Generator, _: Any) -> Any:
    given = [_normal(rng, 1, 1, 128, 512, dtype=_BF16) for _ in range(4)]
    q, k, v, dy = (each[0, 0].T for each in _wide(*given))
    scores = np.where(np.tri(512), q @ k.T / 8, -np.inf)
    total = np.log(np.exp(scores).sum(-1))
    weights = np.exp(scores - total[:, None])
    out = weights @ v
    moved = weights * (dy @ v.T - (dy * out).sum(-1, keepdims=True)) / 8
    wanted = tuple(each.T[None, None] for each in (moved @ k, moved.T @ q, weights.T @ dy))
    q_ref, k_ref, v_ref, dy_ref = given
    o_ref = out.T[None, None].astype(_BF16)
    lse_ref = np.ascontiguousarray(total.reshape(1, 1, 4, 128).transpose(0, 1, 3, 2), np.float32)
    words = {"use_causal_mask": True, "mixed_precision": True, "softmax_scale": 0.125}
    return (q_ref, k_ref, v_ref, o_ref, dy_ref, lse_ref), words, wanted


def _norm_quant(rng: np.random.Generator, get: Callable[[str], Any]) -> Any:
    x, weight = _normal(rng, 1, 128, 512, dtype=_BF16), _normal(rng, 1, 512, dtype=_BF16)
    kind = get("core.utils.common_types").NormType.RMS_NORM
    how = get("core.rmsnorm.rmsnorm_quant").RmsNormQuantKernelArgs(eps=1e-6, lower_bound=0.0, norm_type=kind)
    wide, by = _wide(x, weight)
    return (x, weight, how), {}, rms_norm(wide[0], by[0])[None]


def _scaled(found: Any) -> Array:
    """8-bit floats, times the float32 that stands behind each row of them."""
    rows = np.asarray(found)
    scale = np.ascontiguousarray(rows[..., -4:]).view(np.float32)
    return rows[..., :-4].astype(np.float64) * scale


def _qkv(rows: int) -> Any:
    def make(rng: np.random.Generator, _: Any) -> Any:
        x = _normal(rng, *((1, rows) if rows > 4 else (rows, 1)), 1024, dtype=_BF16)
        weight = _normal(rng, 1024, 768, dtype=_BF16)
        return (x, weight), {}, x.astype(np.float64) @ weight.astype(np.float64)

    return make


def _small_norm(has_bias: bool) -> Any:
    def make(rng: np.random.Generator, _: Any) -> Any:
        x, weight, bias = (_normal(rng, *shape, dtype=np.float16) for shape in ((1, 4, 2048), (1, 2048), (1, 2048)))
        wide, by, plus = (each[0] for each in _wide(x, weight, bias))
        normed = layer_norm(wide, 1e-6, by, plus) if has_bias else rms_norm(wide, by)
        out = np.zeros((128, 4, 16), np.float16)
        return (x, weight, out, *([bias] if has_bias else [])), {}, normed.reshape(4, 128, 16).transpose(1, 0, 2)

    return make


def _experts(rng: np.random.Generator, _: Any) -> Any:
    """Few rows through all experts."""
    rows, width, inner, experts = 4, 512, 256, 4
    x = _normal(rng, rows, width, dtype=_BF16)
    gates, down = ((rng.standard_normal(shape) / 16).astype(_BF16)
                   for shape in ((experts, width, 2, inner), (experts, inner, width)))  # fmt: skip
    shares, index = rng.uniform(0, 1, (rows, experts)).astype(np.float32), np.zeros((rows, 2), np.int32)
    wide, up_to, down_to = _wide(x, gates, down)
    gate, up = (np.einsum("th,ehi->tei", wide, up_to[:, :, at]) for at in range(2))
    wanted = np.einsum("tei,eih->th", gate / (1 + np.exp(-gate)) * up, down_to)
    return (x, gates, down, shares, index, True), {}, wanted


def _router(rng: np.random.Generator, get: Callable[[str], Any]) -> Any:
    rows, experts, k = 64, 32, 4
    x, weight = (rng.uniform(-0.1, 0.1, shape).astype(_BF16) for shape in ((rows, 1024), (1024, experts)))
    logits = x.astype(np.float64) @ weight.astype(np.float64)
    best = np.argsort(-logits, -1)[:, :k]
    shares = np.zeros((rows, experts))
    np.put_along_axis(shares, best, softmax(np.take_along_axis(logits, best, -1)), -1)
    empty = [np.zeros(shape, dtype) for shape, dtype in
             (((rows, experts), np.float32), ((rows, experts), np.float32), ((rows, k), np.uint32))]  # fmt: skip
    act = get("core.utils.common_types").RouterActFnType.SOFTMAX
    return (x, weight, None, *empty, act, k, 1, 0), {"router_pre_norm": False}, (logits, best, shares)


ENTRIES = (
    Entry("cumsum", "core.cumsum.cumsum", "cumsum", _cumsum),
    Entry("RoPE", "core.embeddings.rope", "RoPE", _rope(True), BFLOAT16),
    Entry("RoPE, interleaved", "core.embeddings.rope", "RoPE", _rope(False), BFLOAT16),
    Entry("rope_hf", "core.embeddings.rope_hf", "rope_hf", _rope_rows, BFLOAT16),
    Entry("cascaded_max", "core.max.cascaded_max", "cascaded_max", _cascaded_max, 0.0),
    Entry("attention_cte", "core.attention.attention_cte", "attention_cte", _attention, CHAIN16),
    Entry("attention_tkg", "core.attention.attention_tkg", "attention_tkg", _few_rows, CHAIN16,
          called=_few_rows_from_device),
    Entry("attention_bwd", "core.attention.attention_bwd", "attention_bwd", _attention_backward, CHAIN16),
    Entry("output_projection_cte", "core.output_projection.output_projection_cte.output_projection_cte",
          "output_projection_cte", _projection("bnds,ndh->bsh", 1, 4, 128, 256), BFLOAT16),
    Entry("output_projection_tkg", "core.output_projection.output_projection_tkg", "output_projection_tkg",
          _projection("dbns,ndh->bsh", 128, 2, 4, 2), BFLOAT16),
    Entry("qkv, many rows", "core.qkv.qkv", "qkv", _qkv(512), BFLOAT16),
    Entry("qkv, few rows", "core.qkv.qkv", "qkv", _qkv(4), BFLOAT16),
    Entry("rmsnorm_quant", "core.rmsnorm.rmsnorm_quant", "rmsnorm_quant_kernel", _norm_quant, _E4M3, _scaled),
    Entry("rmsnorm_tkg", "core.subkernels.rmsnorm_tkg", "rmsnorm_tkg", _small_norm(False), FLOAT16),
    Entry("layernorm_tkg", "core.subkernels.layernorm_tkg", "layernorm_tkg", _small_norm(True), CHAIN16),
    Entry("router_topk", "core.router_topk.router_topk", "router_topk", _router),
    # Its addresses are of 200,000 bytes of each partition, more than NeuronCore-v2 has.
    Entry("moe_tkg, all experts, on trn2", "core.moe.moe_tkg.moe_tkg", "moe_tkg", _experts, CHAIN16, chip="trn2"),
    Entry("conv1d", "experimental.conv.conv1d", "conv1d", _conv),
    Entry("depthwise_conv1d", "experimental.conv.depthwise_conv1d", "depthwise_conv1d_implicit_gemm", _depthwise_conv),
    Entry("cross_entropy_forward", "experimental.loss.cross_entropy", "cross_entropy_forward", _cross_entropy),
    Entry("cross_entropy_backward", "experimental.loss.cross_entropy", "cross_entropy_backward",
          _cross_entropy_backward),
)  # fmt: skip

_MX, _CORES, _V3 = "4- and 8-bit floats with shared exponents (Trn3)", "several cores at a time", "NeuronCore-v3"
_SCATTER = "scatters: destinations at places known at run time"
LACKING = {
    "attention_block_tkg": _V3 + ", by its own check",
    "blockwise_mm_bwd": _SCATTER,
    "dynamic_elementwise_add": "loops whose number of turns a register has",
    "fg_allgather": _CORES,
    "fgcc": _CORES,
    "find_nonzero_indices": "nonzero_with_count (Trn3)",
    "find_nonzero_indices_with_count": "nonzero_with_count (Trn3)",
    "indexed_flatten": _SCATTER,
    "mlp": "a file that is Python: line 203 of its mlp.py is not, in this version",
    "moe_block_tkg": _CORES,
    "moe_cte": _SCATTER,
    "mxfp_load": _MX,
    "rmsnorm_mx_quantize_tkg": _MX,
    "rotational_topk": "nc_n_gather",
    "sb2sb_allgather": _CORES,
    "topk_reduce": _CORES,
    "transformer_tkg": _CORES,
}
