"""`exported`: any model of PyTorch as ONNX, with the sizes of what it leaves open."""

import sys
from dataclasses import dataclass
from typing import Any

import onnx

from tvm_neuron.errors import ModelError
from tvm_neuron.frontend.torch.capture import capture
from tvm_neuron.frontend.torch.need import need_torch
from tvm_neuron.frontend.torch.to_onnx import to_onnx

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Exported:
    """A model as ONNX; inputs of which it leaves sizes open have those of the example, which `sizes` holds.

    `has_open_batch`: all that is open is the first dimension, of all inputs and by one name.
    """

    model: onnx.ModelProto
    sizes: dict[str, Shape]
    has_open_batch: bool


def is_of_torch(model: Any) -> bool:
    """Whether it is a module, script or exported program of torch, which is not imported to find out."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    kinds = (torch.nn.Module, torch.jit.ScriptModule, torch.jit.ScriptFunction, torch.export.ExportedProgram)
    return isinstance(model, kinds)


def has_tensors(example_inputs: Any) -> bool:
    """Whether any of them is a tensor of torch, which is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and any(
        isinstance(leaf, torch.Tensor) for leaf in torch.utils._pytree.tree_leaves(example_inputs)
    )


def exported(model: Any, example_inputs: Any = None) -> Exported:
    """A model of PyTorch as ONNX: an `nn.Module`, a function of tensors, a ScriptModule or an ExportedProgram.

    `example_inputs` are the arguments of one call (a tensor, a tuple or a dictionary of named ones); an
    ExportedProgram has its own.

    Raises:
        OptionError: torch is not installed.
        ModelError: torch can't capture it, or not write it as ONNX.
    """
    captured, arguments = capture(model, example_inputs)
    proto = to_onnx(captured, arguments)
    opened = {value.name: [dim.dim_param for dim in _dims(value)] for value in proto.graph.input}
    if not any(name for names in opened.values() for name in names):
        return Exported(proto, {}, False)
    batches = {names[0] if names else "" for names in opened.values()}
    is_batch = len(batches) == 1 and "" not in batches and not any(any(names[1:]) for names in opened.values())
    sizes = _sizes(opened, captured)
    for value in proto.graph.input:
        for dim, size in zip(_dims(value), sizes.get(value.name, ()), strict=False):
            dim.dim_value = size
    return Exported(proto, sizes, is_batch)


def _dims(value: onnx.ValueInfoProto) -> list[onnx.TensorShapeProto.Dimension]:
    return list(value.type.tensor_type.shape.dim)


def _sizes(opened: dict[str, list[str]], program: Any) -> dict[str, Shape]:
    torch = need_torch()
    if program.example_inputs is None:
        names = ", ".join(name for name, params in opened.items() if any(params))
        raise ModelError(
            f"the exported program leaves sizes of {names} open and has no example inputs: export it with those that "
            "it shall be compiled for"
        )
    leaves = torch.utils._pytree.tree_leaves(program.example_inputs)
    shapes = [tuple(leaf.shape) for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return {name: shape for (name, params), shape in zip(opened.items(), shapes, strict=True) if any(params)}
