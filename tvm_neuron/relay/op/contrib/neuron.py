"""`relay.op.contrib.neuron`: what the core is given of a module, as regions that can be looked at before a build."""

from collections.abc import Mapping
from typing import Any

import tvm

from tvm_neuron.relay.dataflow_pattern import DFPattern, is_op, wildcard
from tvm_neuron.relay.op.contrib.register import register_pattern_table
from tvm_neuron.relay.params import bind_params_by_name
from tvm_neuron.relay.placement import NEURON
from tvm_neuron.relay.transform import (
    AnnotateTarget,
    InferType,
    MergeCompilerRegions,
    MergeComposite,
    PartitionGraph,
    Sequential,
    SimplifyInference,
)

_PRODUCTS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul")
_ACTIVATIONS = ("nn.relu", "sigmoid", "tanh", "clip")


def _ways_out(name: str) -> list[tuple[str, DFPattern]]:
    activation: DFPattern = is_op(_ACTIVATIONS[0])
    for each in _ACTIVATIONS[1:]:
        activation = activation | is_op(each)
    return [
        ("_bias_activation", activation(_biased(name))),
        ("_bias", _biased(name)),
        ("_activation", activation(_product(name))),
    ]


def _product(name: str) -> DFPattern:
    return is_op(name)(wildcard(), wildcard())


def _biased(name: str) -> DFPattern:
    return (is_op("nn.bias_add") | is_op("add"))(_product(name), wildcard())


@register_pattern_table(NEURON)
def pattern_table() -> list[tuple[str, DFPattern]]:
    """What the code generator runs as one kernel: a product, with its bias, with its activation; the longest first."""
    return [
        (f"{NEURON}.{name.removeprefix('nn.')}{suffix}", pattern)
        for name in _PRODUCTS
        for suffix, pattern in _ways_out(name)
    ]


def partition_for_neuron(
    mod: tvm.IRModule, params: Mapping[str, Any] | None = None, mod_name: str = "default", composites: bool = False
) -> tvm.IRModule:
    """The module with a function for each region that the core would run, attributes `Compiler` and `global_symbol`.

    `params` are bound first. Which operators these are is what `relay.build` decides, for the device of the enclosing
    target or options. With `composites`, operators of `pattern_table` that become one kernel are functions inside.
    `relay.build` takes the result, and leaves to the CPU what is in no region.

    Raises ModelError: as `relay.build`.
    """
    mod = mod.clone()
    mod["main"] = bind_params_by_name(mod["main"], dict(params or {}))
    steps = [InferType(), SimplifyInference(), *([MergeComposite(pattern_table())] if composites else [])]
    steps += [AnnotateTarget(NEURON), MergeCompilerRegions(), PartitionGraph(mod_name)]
    with tvm.transform.PassContext(opt_level=3):
        return Sequential(steps)(mod)
