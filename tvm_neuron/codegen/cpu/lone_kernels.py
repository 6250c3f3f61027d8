"""warn_of_lone_kernels: TIR functions that are compiled without a Relax function that calls them run on the CPU."""

import warnings

import tvm

from tvm_neuron.errors import PlacementWarning

_CALLED = "neuron.called"  # of kernels that `lower` made or met


def called(mod: tvm.IRModule) -> tvm.IRModule:
    """A lowered module, with a mark on the kernels that its Relax functions call."""
    result = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, tvm.tirx.PrimFunc):
            result.update_func(var, func.with_attr(_CALLED, True))
    return result


def warn_of_lone_kernels(mod: tvm.IRModule) -> None:
    """Warns of functions that no build of a Relax module made: the core's part of a model is cut from Relax alone."""
    lone = [var.name_hint for var, func in mod.functions_items() if _CALLED not in func.attrs]
    if lone:
        warnings.warn(
            f"the TIR function '{lone[0]}' is compiled for the CPU, though the target is neuron: by itself none is "
            "sent to a NeuronCore. Call it in a Relax function (relax.call_tir, BlockBuilder.emit_te) and compile that",
            PlacementWarning,
            stacklevel=2,
        )
