"""How much of a model's work the NeuronCore does; a build in which that is little says so."""

import warnings

import tvm
from tvm import relax

from tvm_neuron.codegen.call_blocks import call_blocks
from tvm_neuron.codegen.capability import argument
from tvm_neuron.codegen.work import asked_macs
from tvm_neuron.errors import PlacementWarning
from tvm_neuron.frontend.origin import bindings_of
from tvm_neuron.partition import Match, Partition, Where
from tvm_neuron.partition.constraints import FOLDABLE, check
from tvm_neuron.partition.plan import Plan
from tvm_neuron.program import Origin
from tvm_neuron.schedule.graph import Graph

LEAST_SHARE = 0.3


def multiplications_moved(parts: Partition) -> float:
    """The share of the multiplications that the NeuronCore does; they are counted only where both have operators."""
    places = {row.where for row in parts.placements}
    if not {Where.CPU.value, Where.NEURONCORE.value} <= places:
        return float(Where.NEURONCORE.value in places)
    core, cpu = sum(map(multiplications, subgraphs(parts.mod))), multiplications(parts.mod["main"])
    return core / (core + cpu) if core + cpu else 1.0


def warn_of_little_work(parts: Partition, moved: float) -> None:
    """Warns if nothing, or less than `LEAST_SHARE` of the multiplications, which is `moved`, runs on the NeuronCore."""
    if not any(row.where == Where.CPU for row in parts.placements):
        return
    why = "the placement has the reason for each operator on the CPU (`neuron-cc report`, tvm_neuron.report)"
    if not any(row.where == Where.NEURONCORE for row in parts.placements):
        warnings.warn(f"nothing of the model runs on the NeuronCore: {why}", PlacementWarning, stacklevel=2)
        return
    if moved < LEAST_SHARE:
        share = f"{moved:.0%} of the model's multiplications run on the NeuronCore"
        warnings.warn(f"only {share}: {why}", PlacementWarning, stacklevel=2)


def subgraphs(mod: tvm.IRModule) -> list[relax.Function]:
    """The parts for NeuronCores, in the order of TVM's own pass over them."""
    functions = [func for _, func in mod.functions_items() if isinstance(func, relax.Function)]
    return [func for func in functions if func.attrs and func.attrs.get("Codegen") == "neuron"]


def multiplications(func: relax.Function) -> int:
    """Those that the calls of a function ask for at run time, as far as their shapes are known."""
    plan = Plan()
    found = 0
    for binding in bindings_of(func):
        value = binding.value
        if all(map(plan.is_constant, value.args)) if isinstance(value, relax.Call) else plan.is_constant(value):
            plan.constants.add(binding.var)
        elif isinstance(value, relax.Call) and isinstance(check(value, plan.is_constant, FOLDABLE), Match):
            found += _of_call(value, plan)
    return found


def _of_call(call: relax.Call, plan: Plan) -> int:
    arguments = [argument(arg, plan.is_constant, plan.spans_of) for arg in call.args]
    try:
        blocks, _ = call_blocks(call, arguments, "", Origin("", call.op.name))
    except Exception:  # a kernel that can't be read is on the CPU, and all of this is for a warning
        return 0
    flat = [tensor for arg in arguments for tensor in (arg if isinstance(arg, tuple) else (arg,))]
    inputs = [tensor for tensor in flat if tensor is not None and tensor.value is None]
    return sum(asked_macs(Graph(inputs, [], blocks)).values())
