"""Write a kernel
==============

A softmax by hand: its timeline, a tile that another destroys, quicker than the compiler's, in a model.

Run it with `python tutorials/10_write_a_kernel.py`; it takes a few seconds. The language is that of the public Neuron
Kernel Interface; docs/nki.md says what of it is here.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import tvm
from tvm import relax

import tvm_neuron
import tvm_neuron.nki as nki
import tvm_neuron.nki.isa as nisa
import tvm_neuron.nki.language as nl
from tvm_neuron.errors import KernelError
from tvm_neuron.neff import Pipeline
from tvm_neuron.profile import run_of, trace_file

CHIP, ROWS, COLUMNS = "inf2", 1024, 1024
x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), dtype=np.float32)
powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
reference = powers / powers.sum(axis=1, keepdims=True)

# %%
# 1. A first kernel
# -----------------
#
# A kernel is a function that Python runs once; every call becomes instructions. On chip a tile has at most 128 rows,
#    one a partition, so the rows go through SBUF in turns.


@nki.jit
def softmax(x):
    """Along the rows."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for turn in nl.affine_range(x.shape[0] // 128):
        rows = slice(128 * turn, 128 * turn + 128)
        tile = nl.load(x[rows])
        raised = nl.exp(tile - nl.max(tile, axis=1))
        nl.store(out[rows], value=raised / nl.sum(raised, axis=1))
    return out


def error(found: np.ndarray) -> float:
    """The largest difference from NumPy in float64."""
    return float(np.abs(found - reference).max())


assert error(softmax(x)) < 1e-6, "float32 arithmetic on values of at most 1"

# %%
# 2. Its timeline
# ---------------
#
# The program that it became is timed by the same clock as the compiler's. Vector does a row's maximum,
#    difference, sum and quotient, so it is busy longest.

traced = softmax.on(CHIP).trace(x)
busy = {queue: ps / 1e6 for queue, ps in traced.time().busy_ps.items() if not queue.startswith("dma")}
shown = ", ".join(f"{queue} {us:.1f}" for queue, us in busy.items())
print(f"softmax: {traced.time().latency_us:.1f} us on {CHIP}; busy: {shown}")
assert max(busy, key=lambda queue: busy[queue]) == "pool", "Vector's queue has the name of its engine on inf1"
with tempfile.TemporaryDirectory() as folder:
    timeline = Path(folder) / "softmax.json"  # for chrome://tracing or Perfetto
    timeline.write_bytes(trace_file(run_of([Pipeline.of(traced.neff())]), str(timeline)))
    print(f"its timeline has {len(json.loads(timeline.read_text())['traceEvents'])} events")

# %%
# 3. A tile that another destroys
# -------------------------------
#
# Who places tiles by hand may place one on another that is still needed. Here both tiles are given the same bytes:
#    the second load destroys what the first one brought before it is used. The refusal names both, and the line.


import neuronxcc.nki.compiler as ncc  # noqa: E402 - resolves to tvm_neuron.nki, which is imported above


def sum_of_halves(distance: int) -> nki.Kernel:
    """The first 128 rows plus the next 128, by tiles whose addresses are so many bytes apart."""

    @nki.jit
    def kernel(x):
        out = nl.ndarray((128, COLUMNS), dtype=x.dtype, buffer=nl.shared_hbm)
        one = nl.ndarray((128, COLUMNS), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
        two = nl.ndarray((128, COLUMNS), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=distance))
        one[...] = nl.load(x[0:128])
        two[...] = nl.load(x[128:256])
        nl.store(out, value=one + two)
        return out

    return kernel


try:
    sum_of_halves(distance=2048)(x)
    raise AssertionError("tiles of 4096 bytes a partition, 2048 apart")
except KernelError as refusal:
    print(f"refused: {refusal}")
assert np.array_equal(sum_of_halves(distance=4 * COLUMNS)(x), x[:128] + x[128:256])

# %%
# 4. Quicker than the compiler
# ----------------------------
#
# Scalar can take the sum on the way while it raises (`activation_reduce`) and add the
#    maximum's negative as its bias, so that of Vector's four passes over the tile two are left.


@nki.jit
def quicker(x):
    """The same."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for turn in nl.affine_range(x.shape[0] // 128):
        rows = slice(128 * turn, 128 * turn + 128)
        tile = nl.load(x[rows])
        bottom, total, share = (nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf) for _ in range(3))
        raised = nl.ndarray(tile.shape, nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(bottom, nl.max, tile, axis=1, negate=True)
        nisa.activation_reduce(raised, nl.exp, tile, bias=bottom, reduce_op=nl.add, reduce_res=total)
        nisa.reciprocal(share, total)
        nisa.tensor_scalar(raised, raised, nl.multiply, share)
        nl.store(out[rows], value=raised)
    return out


assert error(quicker(x)) < 1e-6

# %%
# 5. Into a model
# ---------------
#
# `nki.call` is an expression of Relax. It is told what the compiler would have there, so the report
#    has both times. A kernel is a program of its own; what goes between it and its neighbours passes the host.

builder, rows = relax.BlockBuilder(), relax.Var("x", relax.TensorType(x.shape, "float32"))
with builder.function("main", [rows]):
    with builder.dataflow():
        doubled = builder.emit(relax.op.multiply(rows, relax.const(2.0, "float32")))
        found = nki.call(quicker, doubled, instead_of=lambda v: relax.op.nn.softmax(v, axis=-1))
        result = builder.emit_output(relax.op.sqrt(builder.emit(found)))
    builder.emit_func_output(result)
library = tvm.compile(builder.get(), target=f"neuron/{CHIP}")

(use,) = tvm_neuron.report(library).kernels
print(f"{use.kernel} in {use.subgraph}: {use.latency_us:.1f} us, compiled it would be {use.compiled_us:.1f} us")
assert use.compiled_us is not None
assert use.latency_us < use.compiled_us

output = relax.VirtualMachine(library, tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()
squares = np.exp(2 * (x.astype(np.float64) - x.max(axis=1, keepdims=True)))
assert np.abs(output**2 - squares / squares.sum(axis=1, keepdims=True)).max() < 1e-6
print("the model's outputs agree with NumPy in float64")
