"""The partition from inside
=========================

Bring your own codegen, as TVM calls it: how a module is cut in parts, what a part becomes, and how the parts meet
again; step by step, with the passes that a build runs.

Run it with `python tutorials/06_partition_from_inside.py`; it takes a few seconds.
"""

import numpy as np
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

import tvm_neuron
from tvm_neuron import relay
from tvm_neuron.build import placed, run_codegen
from tvm_neuron.codegen import cpu
from tvm_neuron.codegen.legalise import legalise
from tvm_neuron.codegen.share import subgraphs

rng = np.random.default_rng(0)

# %%
# 1. A model with something for the CPU
# -------------------------------------
#
# A NeuronCore has no tensor whose size depends on data, and NonZero makes one.

weight = rng.standard_normal((64, 32), dtype=np.float32) / 8
nodes = [
    helper.make_node("MatMul", ["x", "w"], ["m"], name="product"),
    helper.make_node("Tanh", ["m"], ["t"], name="tanh"),
    helper.make_node("Greater", ["t", "half"], ["large"], name="compare"),
    helper.make_node("NonZero", ["large"], ["places"], name="find"),
]
graph = helper.make_graph(
    nodes,
    "net",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [128, 64])],
    [
        helper.make_tensor_value_info("t", TensorProto.FLOAT, [128, 32]),
        helper.make_tensor_value_info("places", TensorProto.INT64, [2, None]),
    ],
    [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.float32(0.5), "half")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
mod, params = relay.frontend.from_onnx(model)
print(mod["main"])

# %%
# 2. The cut
# ----------
#
# Every operator is asked whether a schedule takes its kernel on this device. What can run on the core becomes functions
# with the attribute `Codegen`, as any codegen of TVM's gets them; the row of an operator keeps the reason where it
# can't.

options = tvm_neuron.BuildOptions(device="neuron/inf2", minimum_segment_size=1)
parts = placed(mod, params, options)
for row in parts.placements:
    print(row.name, row.where, row.reason)
for func in subgraphs(parts.mod):
    print(func.attrs["global_symbol"], func.attrs["Codegen"], [var.name for var in func.params])
assert [row.where for row in parts.placements][-1] == "cpu"

# %%
# 3. What a part means
# --------------------
#
# Nobody tells the compiler what a Tanh is: TVM's own kernels do. Each is read once as blocks: axes, an expression, and
# how values are combined along the axes that are summed.

(part,) = subgraphs(parts.mod)
for block in legalise(part).blocks:
    print(block.origin.op, block.axes, block.combine or "elementwise", block.output)

# %%
# 4. What a part becomes
# ----------------------
#
# The code generator is registered as `relax.ext.neuron`, and TVM's pass `RunCodegen` calls it: in the place of the
# function there is a call of a module that holds a NEFF.

compiled = run_codegen(parts, options)
print([var.name_hint for var, func in compiled.functions_items() if isinstance(func, relax.Function)])
(library,) = compiled.attrs["external_mods"]
print("a module of kind", library.kind)

# %%
# 5. And together
# ---------------
#
# The rest is lowered for the CPU, and TVM's virtual machine runs both. The NEFF is all that the modelled core sees.

executable = relax.build(cpu.lower(compiled, ""), tvm.target.Target("llvm"), relax_pipeline=None)
machine = relax.VirtualMachine(executable, tvm.cpu())
x = rng.standard_normal((128, 64), dtype=np.float32)
tanh, places = (each.numpy() for each in machine["main"](tvm.runtime.tensor(x)))
expected = np.tanh(x.astype(np.float64) @ weight)
print("error of the tanh", np.abs(tanh - expected).max())
assert np.abs(tanh - expected).max() < 0.02  # operands in bfloat16
assert np.array_equal(places, np.stack(np.nonzero(tanh > 0.5)))
