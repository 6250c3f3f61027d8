"""Import a model
==============

One network, come from ONNX, Relay's language, Relax, PyTorch and JAX; and what an importer says of what it can't read.

Run it with `python tutorials/05_import_models.py`; it takes a few seconds. PyTorch and JAX are tried where they are
installed: `pip install 'tvm-neuron[torch]'`, `pip install 'tvm-neuron[jax]'`.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.errors import ModelError

rng = np.random.default_rng(0)
weight = rng.standard_normal((64, 10), dtype=np.float32) / 8
x = rng.standard_normal((4, 64), dtype=np.float32)
logits = np.maximum(x, 0).astype(np.float64) @ weight
expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def check(name: str, library: Any) -> None:
    """Runs a library and compares: products of bfloat16 are off by some tenths of a per cent."""
    module = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
    module.set_input(0, x)
    module.run()
    error = np.linalg.norm(module.get_output(0).numpy() - expected) / np.linalg.norm(expected)
    report = tvm_neuron.report(library)
    print(f"{name}: {report.latency_us:.2f} us, all on the core: {not report.placed('cpu')}, error {error:.2%}")
    assert error < 0.01


# %%
# 1. ONNX
# -------
#
# The first format. `from_onnx` takes a path or a model; sizes that the file leaves open, and another batch, are given
# as `shape`. The weights stay beside the module.

nodes = [
    helper.make_node("Relu", ["x"], ["r"], name="relu"),
    helper.make_node("MatMul", ["r", "w"], ["m"], name="matmul"),
    helper.make_node("Softmax", ["m"], ["y"], name="softmax"),
]
graph = helper.make_graph(
    nodes,
    "net",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 64])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 10])],
    [numpy_helper.from_array(weight, "w")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
mod, params = relay.frontend.from_onnx(model, {"x": (4, 64)})
check("ONNX", relay.build(mod, target="neuron/inf2", params=params))

# %%
# A core has no tensors of unknown size. A size that is missing is asked for by its name, with the words to give it.

mod, params = relay.frontend.from_onnx(model)
try:
    relay.build(mod, target="neuron/inf2", params=params)
except ModelError as error:
    print(f"{error.code}: {error}")

# %%
# 2. Relay's language
# -------------------
#
# The expressions of TVM 0.18, with operators overloaded; variables get their types from the operators that use them.

data = relay.var("x", shape=(4, 64))
expr = relay.nn.softmax(relay.nn.dense(relay.nn.relu(data), relay.var("w"), units=10))
print(relay.transform.InferType()(tvm.IRModule.from_expr(expr)))
library = relay.build(tvm.IRModule.from_expr(expr), target="neuron/inf2", params={"w": weight.T.copy()})
check("Relay", library)

# %%
# 3. Relax
# --------
#
# TVM's own language today. Any of TVM's importers that gives such a module leads here.

rows = relax.Var("x", relax.TensorType((4, 64), "float32"))
matrix = relax.Var("w", relax.TensorType((64, 10), "float32"))
builder = relax.BlockBuilder()
with builder.function("main", [rows, matrix]):
    with builder.dataflow():
        product = builder.emit(relax.op.matmul(builder.emit(relax.op.nn.relu(rows)), matrix))
        output = builder.emit_output(relax.op.nn.softmax(product))
    builder.emit_func_output(output)

bound = relax.transform.BindParams("main", {"w": weight})(builder.get())
executable = tvm.compile(bound, target="neuron/inf2")
found = relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()
print(f"Relax: {tvm_neuron.report(executable).headline()}")
assert np.linalg.norm(found - expected) < 0.01 * np.linalg.norm(expected)

# %%
# 4. PyTorch and JAX
# ------------------
#
# `tvm_neuron.compile` takes what the framework has: a module or a function, with the arguments of one call.

if find_spec("torch"):
    import torch

    network = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(64, 10, bias=False), torch.nn.Softmax(dim=1))
    network[1].weight.data = torch.from_numpy(weight.T.copy())
    check("PyTorch", tvm_neuron.compile(network.eval(), (torch.from_numpy(x),), "neuron/inf2"))
if find_spec("jax"):
    import jax

    def forward(x: Any) -> Any:
        """The network in JAX."""
        return jax.nn.softmax(jax.nn.relu(x) @ weight)

    check("JAX", tvm_neuron.compile(jax.jit(forward), x, "neuron/inf2"))

# %%
# 5. Others
# ---------
#
# TFLite, Core ML, TensorFlow, Keras and MXNet have importers under the names that they had in Relay,
# `relay.frontend.from_tflite` and so on. The rest says how to get to ONNX.

try:
    relay.frontend.from_paddle(None)
except ModelError as error:
    print(error)
