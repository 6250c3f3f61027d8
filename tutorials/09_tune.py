"""Tune
====

What the compiler can try beyond its rules: levels, budgets, shares of memory, precision, and what each is worth.

Run it with `python tutorials/09_tune.py`; it takes some seconds.
"""

import time

import numpy as np
import tvm

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.codegen.tuning import CANDIDATES, Tuning
from tvm_neuron.profile import Report

rng = np.random.default_rng(0)

# %%
# 1. A model that doesn't fit
# ---------------------------
#
# Two convolutions whose weights take more than the SBUF has beside their tensors. What is kept, cut into strips or sent
# to DRAM is then a matter of choice, and that is where a search finds something; what fits has little to gain.

x, weights = relay.var("x", shape=(1, 512, 28, 28)), {}
for name in ("w1", "w2"):
    x = relay.nn.relu(relay.nn.conv2d(x, relay.var(name), channels=512, kernel_size=3, padding=1))
    weights[name] = rng.standard_normal((512, 512, 3, 3), dtype=np.float32) / 68
network = tvm.IRModule.from_expr(x)


def built(device: str = "neuron/inf1", **choices: object) -> Report:
    """The report of a build, and how long it took to make."""
    begin = time.perf_counter()
    options = tvm_neuron.BuildOptions(device=device, **choices)
    report = tvm_neuron.report(relay.build(network, params=weights, options=options))
    seconds, traffic = time.perf_counter() - begin, report.dram_bytes / 1e6
    print(f"{choices}: {report.latency_us:,.1f} us, {traffic:.1f} MB over the DRAM; compiled in {seconds:.1f} s")
    return report


# %%
# 2. Levels
# ---------
#
# `-O1` tries nothing, `-O2` a few orders of kernels that run in tiles, `-O3` makes several programs and takes the one
# that the clock of the model finds quickest. The clock is exact for the model, so no device and no repeats are needed.

levels = {level: built(optlevel=level) for level in (1, 2, 3)}
assert levels[3].latency_us < 0.97 * levels[2].latency_us

# %%
# A budget ends the trials: what is best by then is taken.

limited = built(optlevel=3, time_budget_seconds=0.1)
assert limited.latency_us >= levels[3].latency_us

# %%
# 3. What is searched
# -------------------
#
# Which part of SBUF is kept for weights on their way, and how large strips may be. A choice of your own is where a
# search starts, or all there is without one.

print(CANDIDATES)
shares = {share: built(tuning=Tuning(weights_share=share)) for share in CANDIDATES["weights_share"]}
best = min(shares, key=lambda share: shares[share].latency_us)
print(f"1 / {best} of SBUF for weights is best here")

# %%
# 4. Precision
# ------------
#
# Operands of the array are bfloat16 unless you say otherwise; in float32, which the array of inf1 does not take, it
# makes several passes. A mode for single operators keeps what is sensitive exact and the rest quick.

usual = built("neuron/inf2")
mixed = built("neuron/inf2", fp32_cast_of={"*_0": "none"})
exact = built("neuron/inf2", fp32_cast="none")
assert usual.latency_us < mixed.latency_us < exact.latency_us

# %%
# 5. And the rest
# ---------------
#
# `tvmc tune` keeps what a search found, so that compiling with its records searches no more
# (`python -m tvm_neuron.tvmc`). Batch, cores and pipelines are the choices of tutorial 3. And `neuron-cc sweep --vary
# optlevel --vary weights_share` makes a table and a page of any of them, on all cores of a machine.
