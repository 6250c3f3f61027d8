"""Deploy a mixed model
====================

One library, a new process without the compiler, many threads.

Run it with `python tutorials/02_deploy_a_mixed_model.py`; it takes a few seconds.
"""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.errors import PlacementError, QueueFullError
from tvm_neuron.runtime.service import Service
from tvm_neuron.runtime.throughput import throughput

scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)
rng = np.random.default_rng(0)

# %%
# 1. A detector's end
# -------------------
#
# Scores by a product with weights, and then the choice among overlapping boxes, whose result has as many rows as the
# data say. A program of the accelerator has no tensors without a size.

weights = rng.standard_normal((64, 4), dtype=np.float32) / 8
nodes = [
    helper.make_node("MatMul", ["features", "w"], ["logits"], name="score"),
    helper.make_node("Sigmoid", ["logits"], ["sure"], name="sigmoid"),
    helper.make_node("Transpose", ["sure"], ["scores"], name="by_class", perm=[0, 2, 1]),
    helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"], name="choose"),
]
graph = helper.make_graph(
    nodes,
    "detector",
    [
        helper.make_tensor_value_info("features", TensorProto.FLOAT, [1, 50, 64]),
        helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, 50, 4]),
    ],
    [
        helper.make_tensor_value_info("chosen", TensorProto.INT64, [None, 3]),
        helper.make_tensor_value_info("sure", TensorProto.FLOAT, [1, 50, 4]),
    ],
    [
        numpy_helper.from_array(weights, "w"),
        numpy_helper.from_array(np.int64([20]), "most"),
        numpy_helper.from_array(np.float32([0.5]), "overlap"),
        numpy_helper.from_array(np.float32([0.6]), "least"),
    ],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
mod, params = relay.frontend.from_onnx(model)

# %%
# 2. All of it on the NeuronCore, or an error
# -------------------------------------------
#
# Who must have all of it on the NeuronCore says so, and is told what can't be there, and why.

try:
    relay.build(mod, params=params, options=tvm_neuron.BuildOptions(must_compile=True))
except PlacementError as error:
    print(error)

# %%
# 3. Parts on the CPU
# -------------------
#
# Else the library has both parts, and its report says which operator is where, and what moves between them.

library = relay.build(mod, target="neuron", params=params)
for row in tvm_neuron.report(library).placement:
    print(f"{row.name}: {row.where}")
assert [row.name for row in tvm_neuron.report(library).placed("cpu")] == ["choose"]
for transfer in tvm_neuron.report(library).transfers:
    print(f"{transfer.tensor}: {transfer.bytes:,} bytes {transfer.direction}")
library.export_library(folder / "detector.so")

# %%
# 4. A process without the compiler
# ---------------------------------
#
# The library runs in a process that has only the runtime half: `import tvm_neuron.runtime` brings no compiler.

boxes = np.sort(rng.random((1, 50, 2, 2), dtype=np.float32), axis=2).reshape(1, 50, 4)
features = rng.standard_normal((1, 50, 64), dtype=np.float32)
np.savez(folder / "inputs.npz", features=features, boxes=boxes)
script = """
import sys
import numpy as np, tvm
import tvm_neuron.runtime

executor = tvm.runtime.load_module("detector.so")["default"](tvm.cpu())
executor.run(**np.load("inputs.npz"))
print("boxes chosen:", executor.get_output(0).shape[0])
assert not any(name.startswith(("tvm_neuron.codegen", "tvm_neuron.frontend")) for name in sys.modules)
"""
done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
print(done.stdout.strip())

# %%
# 5. Serve it
# -----------
#
# To serve it: a service owns the NeuronCores of the process. A model on two of them answers many threads; what it holds
# at once is bounded, so that a caller who is too fast is told so instead of filling the memory.

with Service(total_cores=4) as service:
    served = service.load(folder / "detector.so", "detector", replicas=2)
    served.start()
    print(f"on cores {served.cores}, at most {served.most_requests} requests at once")

    def ask(number: int) -> np.ndarray:
        """One client; each has features of its own."""
        mine = np.random.default_rng(number).standard_normal((1, 50, 64), dtype=np.float32)
        found = served.infer({"features": mine, "boxes": boxes})
        expected = 1 / (1 + np.exp(-(mine.astype(np.float64) @ weights)))
        assert np.abs(found["sure"] - expected).max() < 0.02  # both operands of the product are rounded to bfloat16
        return found["chosen"]

    with ThreadPoolExecutor(4) as clients:
        answers = list(clients.map(ask, range(12)))
    print(f"{len(answers)} answers, of {min(map(len, answers))} to {max(map(len, answers))} boxes")

    futures = []
    try:
        while True:
            futures.append(served.submit({"features": features, "boxes": boxes}))
    except QueueFullError as error:
        print(error)
    assert {len(future.result()["chosen"]) for future in futures} == {len(futures[0].result()["chosen"])}

# %%
# 6. What to expect of the chip
# -----------------------------
#
# The modelled rate for some numbers of cores and requests under way. The CPU part is not modelled; measure it on your
# host and give it as `host_us`.

for cores, depth in ((1, 1), (1, 4), (4, 16)):
    rate = throughput(library, cores, depth, host_us=150)
    print(f"{cores} cores, {depth} under way: {rate.requests_per_second:,.0f} requests/s, limited by {rate.bound}")

scratch.cleanup()
