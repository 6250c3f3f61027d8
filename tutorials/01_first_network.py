"""A first network
===============

From ONNX to instructions, what they cost, and what happens when one of them is changed.

Run it with `python tutorials/01_first_network.py`; it takes a few seconds. For the comparison it needs onnxruntime
(`pip install onnxruntime`; this project's extra `dev` has it).
"""

import json
import re
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import tvm
from onnx import TensorProto, helper, numpy_helper

import tvm_neuron
from tvm_neuron import hw, neff, relay
from tvm_neuron.errors import ProgramError
from tvm_neuron.program import parse_program, print_program
from tvm_neuron.program.race import check_races
from tvm_neuron.sim import Machine

scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)
rng = np.random.default_rng(0)


def distance(actual: np.ndarray, expected: np.ndarray) -> float:
    """The relative L2 error."""
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))


# %%
# 1. A model
# ----------
#
# Two convolutions, two poolings and a classifier with ten classes.


def weight(name: str, *shape: int) -> onnx.TensorProto:
    """Random weights that keep the size of what they are applied to."""
    values = rng.standard_normal(shape, dtype=np.float32) / np.sqrt(np.prod(shape[1:]))
    return numpy_helper.from_array(values.astype(np.float32), name)


nodes = [
    helper.make_node("Conv", ["image", "w1"], ["c1"], name="conv1", pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
    helper.make_node("MaxPool", ["r1"], ["p1"], name="pool1", kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node("Conv", ["p1", "w2"], ["c2"], name="conv2", pads=[1, 1, 1, 1]),
    helper.make_node("Tanh", ["c2"], ["t2"], name="tanh2"),
    helper.make_node("GlobalAveragePool", ["t2"], ["g"], name="pool2"),
    helper.make_node("Flatten", ["g"], ["f"], name="flatten"),
    helper.make_node("Gemm", ["f", "w3"], ["scores"], name="classify", transB=1),
]
graph = helper.make_graph(
    nodes,
    "first_network",
    [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 32, 32])],
    [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
    [weight("w1", 16, 3, 3, 3), weight("w2", 32, 16, 3, 3), weight("w3", 10, 32)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
image = rng.standard_normal((1, 3, 32, 32), dtype=np.float32)
expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"image": image})[0]

# %%
# 2. Compile and run
# ------------------
#
# Compile it, write the library, load it again and run it on the hardware model.

mod, params = relay.frontend.from_onnx(model)
library = relay.build(mod, target="neuron", params=params)
library.export_library(folder / "first.so")
executor = tvm.runtime.load_module(str(folder / "first.so"))["default"](tvm.cpu())
executor.run(image=image)
scores = executor.get_output(0).numpy()

# %%
# 3. Compare with onnxruntime
# ---------------------------
#
# Operands of the matrix engine are rounded to bfloat16, which has 8 significant bits: each rounding is off by
# up to 0.2 %, and a handful of layers adds up to some tenths of a per cent.

print(f"relative L2 error against float32: {distance(scores, expected):.3%}")
assert distance(scores, expected) < 0.02
assert scores.argmax() == expected.argmax()

# %%
# 4. The report
# -------------
#
# Where each operator of the model runs, and what the run costs on the chip.

report = tvm_neuron.report(library)
print(report.headline())
for row in report.placement:
    print(f"  {row.name:10} {row.op:18} {row.where} {row.reason}")
for layer in report.layers:
    print(f"  {layer.name:10} {layer.latency_us:6.2f} us, busy: {dict(layer.busy_us)}")
assert {row.where for row in report.placement} == {"neuroncore"}
assert sum(layer.latency_us for layer in report.layers) <= report.latency_us * 1.001

# %%
# 5. The program
# --------------
#
# What the NEFF in the library holds, as text. Tensors in DRAM and the model's operators come first, then instructions
# and loops. `origin` says for which operator an instruction works, `wait` what it waits for.

(program_bytes,) = tvm_neuron.runtime.neffs(library).values()
compiled = neff.read(program_bytes)
text = print_program(compiled.program)
origins = dict(re.findall(r'^origin (\d+) \w+ "(\w+)"', text, re.MULTILINE))
matmuls = [line.strip() for line in text.splitlines() if "nc_matmul" in line]
print(f"{len(text.splitlines())} lines, {len(matmuls)} of them matmuls; the first:\n  {matmuls[0]}")
assert parse_program(text) == compiled.program

# %%
# 6. Change it
# ------------
#
# The tanh is a function of the ACT engine's instruction `activation`; with `sigmoid` in its place the program computes
# another model: the same that onnxruntime computes when its Tanh is replaced by Sigmoid.


def run(program_text: str) -> np.ndarray:
    """The scores, from the text of a program."""
    machine = Machine(parse_program(program_text), compiled.device, compiled.weights)
    return machine.run({"image": image})["scores"]


assert np.array_equal(run(text), scores)  # unchanged, it computes what the library did
changed = run(text.replace("function=tanh", "function=sigmoid"))
model.graph.node[4].op_type = "Sigmoid"
other = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"image": image})[0]
print(f"with sigmoid: {distance(changed, scores):.0%} away from before, {distance(changed, other):.3%} from its model")
assert distance(changed, scores) > 0.1
assert distance(changed, other) < 0.02

# %%
# 7. Break it
# -----------
#
# The engines run side by side and meet only where an instruction waits; without the waits of the pooling, it could read
# what the convolution before it hasn't written. The race checker proves it, naming both.

pooling = next(number for number, name in origins.items() if name == "pool1")
lines = [re.sub(r" wait=\S+", "", line) if line.endswith(f"origin={pooling}") else line for line in text.splitlines()]
found = ""
try:
    check_races(parse_program("\n".join(lines)), compiled.device)
except ProgramError as error:
    found = str(error)
print(found)
assert "Data race between Op1 '" in found
assert "of pool1'" in found

# %%
# 8. Shrink the chip
# ------------------
#
# A device is a JSON file of numbers with their sources; here are two with 16 and 13 KiB of SBUF in each of their 128
# partitions instead of 96. With 16 the convolutions run in tiles: a few rows of all of them, then the next rows. That
# takes more instructions and reads some rows of the image again, but no memory beside SBUF. With 13 not even that has
# room: what the layers make goes to DRAM and comes back, and the run takes longer still.

chip = json.loads((Path(hw.__file__).parent / "chips" / "inf1.json").read_text())
reports = {"inf1": report}
for kib in (16, 13):
    chip["name"] = f"small-{kib}"
    chip["sbuf_bytes_per_partition"] = {"value": kib * 1024, "source": "made up for this tutorial"}
    (folder / f"{kib}.json").write_text(json.dumps(chip))
    cramped = relay.build(mod, target={"tag": "neuron", "device": str(folder / f"{kib}.json")}, params=params)
    executor = cramped["default"](tvm.cpu())
    executor.run(image=image)
    assert distance(executor.get_output(0).numpy(), expected) < 0.02
    reports[chip["name"]] = tvm_neuron.report(cramped)
    assert reports[chip["name"]].sbuf_peak_bytes <= kib * 1024 * 128
for name, found in reports.items():
    print(f"{name:8} {found.instructions:3} instructions, {found.spill_bytes:6,} bytes kept in DRAM between layers,"
          f" {found.dram_bytes:7,} bytes moved, {found.latency_us:.1f} us")  # fmt: skip
tiled, spilled = reports["small-16"], reports["small-13"]
assert tiled.instructions > report.instructions
assert tiled.spill_bytes == report.spill_bytes == 0
assert spilled.spill_bytes > 0
assert spilled.dram_bytes > tiled.dram_bytes
assert spilled.latency_us > max(tiled.latency_us, report.latency_us)

scratch.cleanup()
