"""Read the reports
================

What bounds a model, which engine everyone waits for, and what a change would bring.

Run it with `python tutorials/04_read_the_reports.py`; it takes a few seconds. `neuron-cc report FILE` prints the same
as tables.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tvm_neuron
from tvm_neuron import hw, relay
from tvm_neuron.profile import Report, run_of, trace_file
from tvm_neuron.runtime import parts

scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)
rng = np.random.default_rng(0)

WIDTH, HIDDEN = 512, 2048

# %%
# 1. A block of a mixer
# ---------------------
#
# Two products with weights, a nonlinearity between, and a normalisation; for any number of rows.


def block(rows: int) -> onnx.ModelProto:
    """y = LayerNormalization(x + Gelu(x @ up) @ down) for x of [rows, WIDTH]."""
    nodes = [
        helper.make_node("MatMul", ["x", "up"], ["h"], name="up"),
        helper.make_node("Gelu", ["h"], ["g"], name="gelu"),
        helper.make_node("MatMul", ["g", "down"], ["d"], name="down"),
        helper.make_node("Add", ["x", "d"], ["s"], name="residual"),
        helper.make_node("LayerNormalization", ["s", "scale", "bias"], ["y"], name="norm"),
    ]
    weights = {
        "up": rng.standard_normal((WIDTH, HIDDEN), dtype=np.float32) / 16,
        "down": rng.standard_normal((HIDDEN, WIDTH), dtype=np.float32) / 32,
        "scale": rng.standard_normal(WIDTH, dtype=np.float32),
        "bias": rng.standard_normal(WIDTH, dtype=np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "block",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, WIDTH])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def reported(rows: int, device: str = "neuron/inf1", on_cpu: tuple[str, ...] = ()) -> Report:
    """The report of the block as compiled for a device."""
    options = tvm_neuron.BuildOptions(device=device, on_cpu=on_cpu)
    mod, params = relay.frontend.from_onnx(block(rows))
    return tvm_neuron.report(relay.build(mod, params=params, options=options))


# %%
# 2. The headline
# ---------------
#
# Operators by place, the modelled time, and the roofline, which no program can beat: the weights, inputs and outputs
# once over the DRAM's bandwidth, or all multiplications at the array's peak, whichever is longer. The bound also has
# the start of the first and the last transfer, and what engines have to do at the least (docs/bound.md).

one = reported(1)
print(one.headline())
assert one.roofline_us < one.bound_us < one.latency_us

# %%
# 3. What bounds it?
# ------------------
#
# With one row each weight is loaded for a single multiplication, so the DRAM does: the multiplications at peak would
# take a hundredth of the time.

device = hw.load_device("inf1")
at_peak_us = one.macs / device.peak_macs_per_second * 1e6
print(f"{one.macs:,} multiplications would take {at_peak_us:.2f} us; the bytes take {one.roofline_us:.1f} us")
print(f"bytes over the DRAM: {dict(one.dram_bytes_by_kind)}")
assert at_peak_us < one.roofline_us / 10
assert one.dram_bytes_by_kind["weight"] > 0.9 * one.dram_bytes

# %%
# 4. Engines
# ----------
#
# Each one's share of the time, and for whom it stood still. The matrix engine mostly waits for weights.

for engine in one.engines:
    longest = max(engine.stalls_us, key=lambda other: engine.stalls_us[other], default="nobody")
    print(f"  {engine.queue:6} busy {engine.share:5.1%} of the time, waited longest for {longest}")
busy = {engine.queue: engine.busy_us for engine in one.engines}
assert max(us for queue, us in busy.items() if queue.startswith("dma")) > busy["pe"]

# %%
# 5. More rows
# ------------
#
# More rows reuse the weights that are loaded anyway: 256 times the work takes no longer than one row, which waits for
# many small transfers one after the other. The bytes are still the bound: the array is busy for a quarter of the time.

many = reported(256)
print(many.headline())
print(f"per row: {one.latency_us:.1f} us alone, {many.latency_us / 256:.2f} us of 256")
assert many.latency_us < 2 * one.latency_us
assert many.pe_utilisation > 10 * one.pe_utilisation

# %%
# 6. Layers
# ---------
#
# The time of the whole is given to one operator at every instant, so the rows add up. What was fused into another's
# instructions has no row: its work is in the row of the operator that it was fused into.

for layer in sorted(many.layers, key=lambda row: -row.latency_us):
    busy_us = ", ".join(f"{queue} {us:.1f}" for queue, us in layer.busy_us.items())
    print(f"  {layer.name:10} {layer.latency_us:6.1f} us = {layer.share:4.0%}; busy: {busy_us}")
assert abs(sum(layer.latency_us for layer in many.layers) - many.latency_us) < 0.01 * many.latency_us
assert {layer.name for layer in many.layers} <= {row.name for row in many.placement}

# %%
# 7. Another chip
# ---------------
#
# What would another chip bring? Half the bandwidth nearly doubles the time of a single row and of 256 alike, which both
# wait for bytes: ask the model before you ask for hardware. A device is a file of numbers, each with its source.

slower = json.loads((Path(hw.__file__).parent / "chips" / "inf1.json").read_text())
slower["name"] = "half"
slower["dram_bytes_per_second"] = {"value": device.dram_bytes_per_second // 2, "source": "made up for this tutorial"}
(folder / "half.json").write_text(json.dumps(slower))
slowdown = [reported(r.macs // one.macs, str(folder / "half.json")).latency_us / r.latency_us for r in (one, many)]
print(f"half the bandwidth: one row takes {slowdown[0]:.2f} times as long, 256 take {slowdown[1]:.2f} times as long")
assert all(1.8 < each < 2.1 for each in slowdown)
assert reported(256, "neuron/inf2").latency_us < many.latency_us / 3

# %%
# 8. An operator on the CPU
# -------------------------
#
# An operator on the CPU cuts the model in two: both parts' tensors cross the host's link, which the report lists. That
# time, and the CPU's, are not in the modelled latency.

split = reported(256, on_cpu=("gelu",))
for row in split.placed("cpu"):
    print(f"{row.name} ({row.op}) is on the CPU: {row.reason}")
for transfer in split.transfers:
    size, us = transfer.bytes, transfer.link_us
    print(f"  {transfer.subgraph}: {transfer.tensor} {transfer.direction}, {size:,} bytes, {us:.1f} us")
assert sum(row.bytes for row in split.transfers) > 4 * sum(row.bytes for row in many.transfers)

# %%
# 9. The timeline
# ---------------
#
# Every instruction of a run with its operands and what it waited for, arrows from who signals to who waits, and what is
# used of the memories, for Perfetto (ui.perfetto.dev) or chrome://tracing. A name that ends in .pftrace asks for
# Perfetto's own format.

mod, params = relay.frontend.from_onnx(block(256))
library = relay.build(mod, params=params)
(folder / "block.json").write_bytes(trace_file(run_of(parts(library), with_host=False), "block.json"))
events = json.loads((folder / "block.json").read_text())["traceEvents"]
work = [event for event in events if event["ph"] == "X"]
print(f"{len(work)} instructions on {len({event['tid'] for event in work})} queues")
longest = max(work, key=lambda event: event["args"].get("waited ns", 0))
waited, other = longest["args"]["waited ns"], longest["args"]["waited for"]
print(f"the longest wait: {longest['name']}, {waited:,.0f} ns for {other}")
assert len(work) > 50

# %%
# 10. The page
# ------------
#
# All of it in one page, with plots of every instruction: in a notebook a report shows itself so, elsewhere
# `report.to_html()` or `neuron-cc report FILE --html PAGE` write it (with the extra `html`).

tvm_neuron.report(library)

# %%

scratch.cleanup()
