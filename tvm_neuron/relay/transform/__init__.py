"""`relay.transform`: passes over modules of Relay, under the names that they had there."""

from collections.abc import Callable
from typing import Any

import tvm
from tvm.ir.transform import Sequential

from tvm_neuron.relay.infer import infer_types
from tvm_neuron.relay.transform.byoc import AnnotateTarget, MergeCompilerRegions
from tvm_neuron.relay.transform.composite import MergeComposite
from tvm_neuron.relay.transform.constants import FoldConstant, FoldConstantExpr
from tvm_neuron.relay.transform.forms import (
    DeadCodeElimination,
    EliminateCommonSubexpr,
    Inline,
    RemoveUnusedFunctions,
    ToANormalForm,
    ToANormalFormExpr,
    ToGraphNormalForm,
)
from tvm_neuron.relay.transform.fusion import DefuseOps, FuseOps
from tvm_neuron.relay.transform.inference import (
    BackwardFoldScaleAxis,
    CanonicalizeOps,
    FoldScaleAxis,
    SimplifyExpr,
    SimplifyInference,
)
from tvm_neuron.relay.transform.layout import ConvertLayout
from tvm_neuron.relay.transform.outline import PartitionGraph
from tvm_neuron.relay.transform.passes import FunctionPass, function_pass, module_pass
from tvm_neuron.relay.transform.precision import ToMixedPrecision

NOTHING_TO_DO = {
    "AlterOpLayout": "layouts are chosen by the code generator",
    "BatchingOps": "operators side by side run as one where that pays, by the code generator",
    "CanonicalizeCast": "casts go where they are cheap in the code generator",
    "CombineParallelBatchMatmul": "operators side by side run as one where that pays, by the code generator",
    "CombineParallelConv2D": "operators side by side run as one where that pays, by the code generator",
    "CombineParallelDense": "operators side by side run as one where that pays, by the code generator",
    "DivToMul": "the code generator knows what a division costs",
    "DynamicToStatic": "shapes that operators are given are constants here already",
    "FastMath": "the core's functions are as fast as they are exact",
    "FlattenAtrousConv": "dilated convolutions are operators of their own here",
    "FoldExplicitPadding": "padding is folded into what reads it by the code generator",
    "ForwardFoldScaleAxis": "a factor before a convolution costs nothing on the way in",
    "Legalize": "operators have one form here",
    "PlanDevices": "what runs where is decided by the partition",
    "SplitArgs": "a function takes any number of arguments here",
    "ToBasicBlockNormalForm": "there are no basic blocks here",
}
"""Passes that leave modules as they are, and why; scripts may run them, and instruments see them."""


def InferType() -> tvm.transform.Pass:  # noqa: N802 - Relay's name
    """The type of every expression."""

    @tvm.transform.module_pass(opt_level=0, name="InferType")
    def apply(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
        return infer_types(mod)

    return apply


def _nothing(name: str, reason: str) -> Callable[..., tvm.transform.Pass]:
    def make(*args: Any, **kwargs: Any) -> tvm.transform.Pass:
        del args, kwargs  # no choice changes anything
        return module_pass(name, lambda mod: mod, opt_level=0)

    make.__name__, make.__doc__ = name, f"Changes nothing: {reason}."
    return make


globals().update({name: _nothing(name, reason) for name, reason in NOTHING_TO_DO.items()})

__all__ = [
    "AnnotateTarget", "BackwardFoldScaleAxis", "CanonicalizeOps", "ConvertLayout", "DeadCodeElimination", "DefuseOps",
    "EliminateCommonSubexpr", "FoldConstant", "FoldConstantExpr", "FoldScaleAxis", "FunctionPass", "FuseOps",
    "InferType", "Inline", "MergeCompilerRegions", "MergeComposite", "PartitionGraph",
    "RemoveUnusedFunctions", "Sequential", "SimplifyExpr", "SimplifyInference", "ToANormalForm", "ToANormalFormExpr",
    "ToGraphNormalForm", "ToMixedPrecision", "function_pass",
]  # fmt: skip
