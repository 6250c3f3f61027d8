"""Marks for passes: where another compiler's regions begin and end, what is not to be fused; they compute nothing."""

from typing import Any

from tvm_neuron.relay.op.declare import Tensor, operator


@operator("annotation.compiler_begin")
def compiler_begin(data: Tensor, compiler: str) -> Tensor:
    """The same value, which enters a region of `compiler` here."""
    return data


@operator("annotation.compiler_end")
def compiler_end(data: Tensor, compiler: str) -> Tensor:
    """The same value, which leaves a region of `compiler` here."""
    return data


@operator("annotation.stop_fusion")
def stop_fusion(data: Tensor) -> Tensor:
    """The same value, which `FuseOps` does not join to what reads it."""
    return data


@operator("annotation.checkpoint")
def checkpoint(data: Tensor) -> Tensor:
    """The same value; nothing is computed twice in inference."""
    return data


@operator("annotation.cast_hint")
def cast_hint(data: Tensor, dtype: str) -> Tensor:
    """The same value; the dtypes of the core are chosen by the build options."""
    return data


@operator("on_device")
def on_device(data: Tensor, device: Any, constrain_result: bool = False, constrain_body: bool = True) -> Tensor:
    """The same value; what runs where is decided for the whole model."""
    return data


@operator("device_copy")
def device_copy(data: Tensor, src_device: Any, dst_device: Any) -> Tensor:
    """The same value; copies between the host and the core are made where they are needed."""
    return data
