"""legalise: a Relax function as a graph of blocks, each call through its TOPI kernel."""

from typing import Any

from tvm import relax

from tvm_neuron.codegen.call_blocks import call_blocks, shape_of, value_of
from tvm_neuron.errors import at_operator
from tvm_neuron.frontend.origin import OUTPUTS_ATTR, bindings_of, origin_of
from tvm_neuron.partition.spans import spans_of_params
from tvm_neuron.program import Origin
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load
from tvm_neuron.schedule.graph import Block, Graph
from tvm_neuron.schedule.tensor import Tensor


def legalise(func: relax.Function) -> Graph:
    """The function's blocks; tensors bear the names of the function's variables.

    Raises:
        CompileError: a call has no TOPI kernel, or one that can't be read.
    """
    values: dict[Any, Any] = {}
    inputs: list[Tensor] = []
    blocks: list[Block] = []
    for param, span in zip(func.params, spans_of_params(func), strict=True):
        values[param] = Tensor(param.name, shape_of(param.ty), str(param.ty.dtype), "input", span=span)
        inputs.append(values[param])
    names = [str(name) for name in func.attrs[OUTPUTS_ATTR]]
    for binding in bindings_of(func):
        values[binding.var] = _bind(binding, values, blocks)
    result = values[func.body.body] if isinstance(func.body.body, relax.Var) else value_of(func.body.body, values)
    results = result if isinstance(result, tuple) else (result,)
    outputs = [_output(name, tensor, blocks) for name, tensor in zip(names, results, strict=True)]
    return Graph(inputs, outputs, blocks)


def _bind(binding: Any, values: dict[Any, Any], so_far: list[Block]) -> Any:
    value = binding.value
    if not isinstance(value, relax.Call):
        return value_of(value, values)
    found = origin_of(value)
    origin = Origin(found.name, found.op) if found else Origin(binding.var.name, value.op.name)
    with at_operator(origin.name):
        blocks, result = call_blocks(value, [value_of(arg, values) for arg in value.args], binding.var.name, origin)
    so_far.extend(blocks)
    return result


def _output(name: str, tensor: Tensor, blocks: list[Block]) -> Tensor:
    """The tensor under its name as an output; a copy, if it is an input, a constant or another output as well."""
    if tensor.kind == "temp" and tensor.value is None:
        tensor.kind, tensor.name = "output", name
        return tensor
    copy = Tensor(name, tensor.shape, tensor.dtype, "output")
    axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(tensor.shape))
    index: tuple[Expr, ...] = tuple(Index(axis) for axis in axes)
    blocks.append(Block(Origin(name, "Identity"), axes, copy, index, Load(tensor, index)))
    return copy
