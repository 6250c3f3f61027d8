"""Choose batch and pipeline
=========================

How batch, requests under way, cores and pipelines relate, by the modelled times.

Run it with `python tutorials/03_choose_batch_and_pipeline.py`; it takes some seconds. Nothing here runs data but the
comparison at the end: the time of a program doesn't depend on its data, so a report only needs the clock.
"""

import numpy as np
import tvm
from onnx import ModelProto, TensorProto, helper, numpy_helper

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.runtime.throughput import throughput

CHANNELS, SIDE, LAYERS = 1024, 7, 13
rng = np.random.default_rng(0)
weights = [rng.standard_normal((CHANNELS, CHANNELS, 1, 1), dtype=np.float32) / 32 for _ in range(LAYERS)]


def network(batch: int) -> ModelProto:
    """Thirteen convolutions of 1 x 1 with 26 MiB of weights in bfloat16, more than twice what a core's SBUF holds."""
    nodes = []
    for number in range(LAYERS):
        inputs, outputs = [f"h{number}", f"w{number}"], [f"c{number}"]
        nodes.append(helper.make_node("Conv", inputs, outputs, name=f"conv{number}"))
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"h{number + 1}"], name=f"relu{number}"))
    shape = [batch, CHANNELS, SIDE, SIDE]
    graph = helper.make_graph(
        nodes,
        "tower",
        [helper.make_tensor_value_info("h0", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(f"h{LAYERS}", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, f"w{number}") for number, array in enumerate(weights)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def build(batch: int, cores: int = 1) -> tvm.runtime.Executable:
    """The library for a batch size, as a pipeline over so many cores."""
    mod, params = relay.frontend.from_onnx(network(batch))
    return relay.build(mod, params=params, options=tvm_neuron.BuildOptions(pipeline_cores=cores))


# %%
# 1. Batch
# --------
#
# One core has to read all weights from DRAM for every request, however many rows the request has. So a larger batch
# costs little more time at first and gives many more rows a second: until the PE array is what is busy. From there on
# the time grows with the batch, and only the latency gets worse.

MEDIUM, LARGE = 4, 32
BATCHES = (1, MEDIUM, LARGE)
single = {batch: build(batch) for batch in BATCHES}
reports = {batch: tvm_neuron.report(library) for batch, library in single.items()}
rows_per_second = {batch: batch * 1e6 / report.interval_us for batch, report in reports.items()}
for batch, report in reports.items():
    print(f"batch {batch:2}: {report.latency_us:7,.0f} us, {rows_per_second[batch]:9,.0f} rows/s, "
          f"PE array busy with products for {report.pe_utilisation:.0%}")  # fmt: skip
assert reports[MEDIUM].latency_us < 1.5 * reports[1].latency_us
assert rows_per_second[MEDIUM] > 3 * rows_per_second[1]
assert reports[LARGE].latency_us > 1.5 * reports[MEDIUM].latency_us
assert reports[LARGE].pe_utilisation > reports[MEDIUM].pe_utilisation > reports[1].pe_utilisation

# %%
# 2. Queue depth
# --------------
#
# A request also needs the host: a call, and the link for its tensors. With one request under way at a time the core
# waits meanwhile. With some more it always has the next; more than that only wait, and as the rate no longer rises,
# each takes longer (Little's law: requests under way = rate x latency).

DEPTHS = (1, 2, 8)
queued = {depth: throughput(single[MEDIUM], cores=1, queue_depth=depth) for depth in DEPTHS}
for depth, found in queued.items():
    print(f"{depth} under way: {found.requests_per_second:6,.0f} requests/s, {found.latency_us:7,.0f} us each, "
          f"limited by {found.bound}")  # fmt: skip
assert queued[1].bound == "requests"
assert queued[2].requests_per_second > queued[1].requests_per_second
assert queued[8].bound == "cores"
assert queued[8].requests_per_second == queued[2].requests_per_second
assert queued[8].latency_us > 3 * queued[2].latency_us

# %%
# 3. Cores
# --------
#
# Four cores can have a copy of the model each. Each is as slow as one, since each reads all weights; and as the cores
# of a chip share its DRAM, which gives 2.4 times what one core draws, four give less than four times.

copies = throughput(single[MEDIUM], cores=4)
print(f"four copies: {copies.requests_per_second:,.0f} requests/s, limited by {copies.bound}")
assert copies.bound == "DRAM"
assert queued[8].requests_per_second < copies.requests_per_second < 4 * queued[8].requests_per_second

# %%
# Or they are a pipeline: each has some of the layers, whose weights fit into its SBUF and stay there. Nothing comes
# from DRAM but what one core hands to the next. A request goes through all of them, and still is done sooner.

pipeline = build(MEDIUM, cores=4)
(use,) = tvm_neuron.report(pipeline).pipelines
for stage in use.stages:
    print(f"  core {stage.core}: {stage.latency_us:5.1f} us, {stage.kept_bytes / 1e6:.1f} MB of weights stay, "
          f"{stage.first} to {stage.last}")  # fmt: skip
assert use.is_cached
assert use.latency_us < reports[MEDIUM].latency_us
piped = throughput(pipeline, cores=4, queue_depth=32)
print(f"pipeline of four: {piped.requests_per_second:,.0f} requests/s, limited by {piped.bound}; a request is on the "
      f"cores for {use.latency_us:,.0f} us instead of {reports[MEDIUM].latency_us:,.0f}")  # fmt: skip
assert piped.requests_per_second > copies.requests_per_second

# %%
# It only pays with requests for all its stages: one at a time, a single stage works and the others wait.

lonely = throughput(pipeline, cores=4, queue_depth=1)
print(f"pipeline, one request under way: {lonely.requests_per_second:,.0f} requests/s, limited by {lonely.bound}")
assert lonely.requests_per_second < piped.requests_per_second / 2

# %%
# 4. How many cores?
# ------------------
#
# Too few, and weights don't stay; once they do, each further core brings about its share until the slowest stage is a
# single layer. `--static-weights` makes it an error where they don't stay.

rates = {1: 1e6 / reports[MEDIUM].interval_us}
for cores in (2, 4, 8):
    (found,) = tvm_neuron.report(pipeline if cores == 4 else build(MEDIUM, cores)).pipelines
    rates[cores] = found.inputs_per_second
    weights_are = "all stay" if found.is_cached else "partly come from DRAM"
    print(f"{cores} cores: {rates[cores]:6,.0f} requests/s, {rates[cores] / cores / rates[1]:.0%} of as many times one "
          f"core; weights {weights_are}; limit: {found.limit}")  # fmt: skip
assert list(rates.values()) == sorted(rates.values())
assert rates[4] > 4 * rates[1]  # more than linear: against cores that read their weights

# %%
# 5. A large batch
# ----------------
#
# With a large batch the weights matter little: a pipeline gains little over as many times one core, at times it loses a
# little to what its cores hand over. So choose first the batch that the latency allows, and then a pipeline where
# weights are what limits.

(large,) = tvm_neuron.report(build(LARGE, cores=4)).pipelines
gain = {MEDIUM: rates[4] / (4 * rates[1]), LARGE: large.inputs_per_second * reports[LARGE].interval_us / 4e6}
for batch, factor in gain.items():
    print(f"pipeline of four over four times one core: x {factor:.2f} at batch {batch}")
assert gain[LARGE] < gain[MEDIUM]

# %%
# 6. The same bits
# ----------------
#
# Whatever you choose, the numbers stay the same, bit for bit.

values = rng.standard_normal((MEDIUM, CHANNELS, SIDE, SIDE), dtype=np.float32)
answers = []
for library in (single[MEDIUM], pipeline):
    executor = library["default"](tvm.cpu())
    executor.run(h0=values)
    answers.append(executor.get_output(0).numpy())
assert np.array_equal(*answers)
