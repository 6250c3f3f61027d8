"""Add a chip
==========

A chip is a file of numbers, each with its source: change some, and compile for what doesn't exist yet.

Run it with `python tutorials/08_add_a_chip.py`; it takes a few seconds.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import tvm

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.errors import DeviceError
from tvm_neuron.hw import load_device
from tvm_neuron.hw.load import device_to_dict

scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)

# %%
# 1. What a chip is
# -----------------
#
# Sizes, clocks, bandwidths and latencies of one core, with the unit in every name. Each says where it is from:
# documented, derived (`fit`) or assumed (`parameter`).

inf2 = load_device("inf2")
for name in ("pe_columns", "sbuf_bytes_per_partition", "dram_bytes_per_second", "dma_descriptor_ns"):
    print(f"{name} = {getattr(inf2, name):,}: {inf2.sources[name]}")

# %%
# 2. A chip of your own
# ---------------------
#
# Copy a file and change it; here an inf2 whose memory gives four times as many bytes a second, which are then no limit.

described = device_to_dict(inf2) | {"name": "wide"}
described["dram_bytes_per_second"] = {"value": 4 * inf2.dram_bytes_per_second, "source": "parameter: what if"}
file = folder / "wide.json"
file.write_text(json.dumps(described, indent=2))
wide = load_device(str(file))
print(wide.name, f"{wide.dram_bytes_per_second:,} bytes a second")

# %%
# A number that is missing, has no source, or makes no sense is an error that names it.

broken = {key: value for key, value in described.items() if key != "pe_rows"}
(folder / "broken.json").write_text(json.dumps(broken | {"sbuf": {"value": 1, "source": "a slip"}}))
try:
    load_device(str(folder / "broken.json"))
except DeviceError as error:
    print(error)

# %%
# 3. Compile for it
# -----------------
#
# The file's name is the device. Everything follows the numbers: tiles, the memory plan, the order of transfers, the
# time. A layer for one row reads many weights for few products: of four times the bandwidth it gains much.

weights = {"w": np.random.default_rng(0).standard_normal((2048, 2048), dtype=np.float32) / 32}
layer = relay.nn.relu(relay.nn.dense(relay.var("x", shape=(1, 2048)), relay.var("w"), units=2048))
times = {}
for target in ("neuron/inf2", {"tag": "neuron", "device": str(file)}):
    report = tvm_neuron.report(relay.build(tvm.IRModule.from_expr(layer), target=target, params=weights))
    times[report.device] = report.latency_us
    print(f"{report.headline()}")
assert times["wide"] < 0.75 * times["inf2"]

scratch.cleanup()

# %%
# On the command line: `neuron-cc compile model.onnx --target wide.json`. To see many such changes at once,
# `neuron-cc sweep --models model.onnx --chip inf2 --vary dram_bytes_per_second=190000000000,380000000000`.
#
# 4. Give it a name
# -----------------
#
# In a checkout, put the file into `tvm_neuron/hw/chips` and its name into `CHIPS` of `tvm_neuron/hw/load.py`: the
# target `neuron/wide` is there then, and the tests over all chips try it.
