"""Write a schedule rule
=====================

A rule of your own, as a plug-in in a package of its own: integers that you know to be small, on the core.

Run it with `python tutorials/07_write_a_schedule_rule.py`; it takes a few seconds.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)

# %%
# 1. What the compiler refuses, and why
# -------------------------------------
#
# The engines compute in float32, which holds whole numbers up to 2^24. Arithmetic of 32-bit integers therefore goes to
# the CPU: the compiler can't know that yours are small. You may. This script builds such a model, checks its results,
# and prints where the operators run.

SCRIPT = '''
import numpy as np
import tvm
import tvm_neuron
from tvm_neuron import relay

x, y = (relay.var(name, shape=(64, 256), dtype="int32") for name in "xy")
library = relay.build(tvm.IRModule.from_expr(x * y + relay.const(7, "int32")), target="neuron/inf2")
for row in tvm_neuron.report(library).placement:
    print(f"{row.op}: {row.where} {row.reason[-90:]}")
rng = np.random.default_rng(0)
a, b = (rng.integers(-4000, 4000, (64, 256), dtype=np.int32) for _ in "ab")
module = relay.graph_executor.GraphModule(library["default"](tvm_neuron.device()))
module.run(x=a, y=b)
assert np.array_equal(module.get_output(0).numpy(), a * b + 7)
print("results are exact")
'''


def run() -> str:
    """Runs the script in a process of its own, which finds packages in the folder."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


before = run()
print(before)
assert "multiply: cpu" in before

# %%
# 2. The rule
# -----------
#
# A rule gets a block, which is what an operator's kernel computes, and the context: the device, and which dimension of
# each tensor lies on the partitions. It returns a kernel, or a refusal whose words complete the sentence "no schedule
# takes it because". Operations on integers have a name that begins with `int.`; this rule takes that away and leaves
# the rest to the rule for elements. It never looks at the operator's name.

RULE = '''
"""Schedules of our house."""

from dataclasses import replace

from tvm_neuron.schedule.expr import INTEGER, Apply, rewrite_operations
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.rule import Context, Refusal
from tvm_neuron_schedules.elementwise import ElementwiseRule


class SmallIntegers:
    """Arithmetic of integers whose results stay below 2^24 in magnitude, as all of ours do."""

    name = "small integers"

    def apply(self, block: Block, context: Context) -> Kernel | Refusal:
        expr = rewrite_operations(block.expr, _in_float)
        if expr == block.expr:
            return Refusal("it has no arithmetic of integers")
        return ElementwiseRule().apply(replace(block, expr=expr), context)


def _in_float(operation: Apply) -> Apply:
    return Apply(operation.op.removeprefix(INTEGER), operation.args)


RULES = (SmallIntegers(),)
'''
(folder / "house_rules.py").write_text(RULE)

# %%
# 3. The plug-in
# --------------
#
# A package with an entry point in the group `tvm_neuron.schedules` is found when it is installed. In its pyproject.toml
# that is
#
# .. code-block:: toml
#
#    [project.entry-points."tvm_neuron.schedules"]
#    house = "house_rules:RULES"
#
# and these two files are what `pip install` would write of it. Rules are tried in the order of the entry points' names;
# those of this project are `neuron`.

about = folder / "house_rules-1.0.dist-info"
about.mkdir()
(about / "METADATA").write_text("Metadata-Version: 2.1\nName: house-rules\nVersion: 1.0\n")
(about / "entry_points.txt").write_text("[tvm_neuron.schedules]\nhouse = house_rules:RULES\n")

# %%
# 4. The same model again
# -----------------------
#
# The partition asks the same rules, so the operators move to the core by themselves; nothing else had to be told. The
# instructions, the memory plan and the clock need no change: they know kernels, not rules.

after = run()
print(after)
assert "multiply: neuroncore" in after
assert "cpu" not in after

scratch.cleanup()
