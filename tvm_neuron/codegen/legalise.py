"""legalise: a Relax function as a graph of blocks, each call through its TOPI kernel."""

from typing import Any

import tvm
from tvm import relax, tirx

from tvm_neuron.codegen.read_kernel import read_kernel
from tvm_neuron.errors import CompileError
from tvm_neuron.frontend.origin import OUTPUTS_ATTR, bindings_of, origin_of
from tvm_neuron.program import Origin
from tvm_neuron.runtime.tensors import as_numpy
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
    for param in func.params:
        values[param] = Tensor(param.name, _shape(param.ty), str(param.ty.dtype), "input")
        inputs.append(values[param])
    names = [str(name) for name in func.attrs[OUTPUTS_ATTR]]
    for binding in bindings_of(func):
        values[binding.var] = _bind(binding, values, blocks)
    result = values[func.body.body] if isinstance(func.body.body, relax.Var) else _value(func.body.body, values)
    results = result if isinstance(result, tuple) else (result,)
    outputs = [_output(name, tensor, blocks) for name, tensor in zip(names, results, strict=True)]
    return Graph(inputs, outputs, blocks)


def _bind(binding: Any, values: dict[Any, Any], so_far: list[Block]) -> Any:
    value = binding.value
    if not isinstance(value, relax.Call):
        return _value(value, values)
    found = origin_of(value)
    origin = Origin(found.name, found.op) if found else Origin(binding.var.name, value.op.name)
    blocks, result = call_blocks(value, [_value(arg, values) for arg in value.args], binding.var.name, origin)
    so_far.extend(blocks)
    return result


def _value(expr: Any, values: dict[Any, Any]) -> Any:
    if isinstance(expr, relax.Tuple):
        return tuple(_value(field, values) for field in expr.fields)
    if isinstance(expr, relax.TupleGetItem):
        return _value(expr.tuple_value, values)[expr.index]
    if isinstance(expr, tvm.ir.GenericConst):
        array = as_numpy(expr.value)
        return Tensor("constant", array.shape, str(array.dtype), "temp", array)
    return values.get(expr)


def call_blocks(call: relax.Call, arguments: list[Any], name: str, origin: Origin) -> tuple[list[Block], Any]:
    """The blocks of one operator and the tensor (or tuple of tensors) that they make.

    Raises:
        CompileError: it has no TOPI kernel, or one that can't be read.
    """
    legalise_op = call.op.get_attr("FLegalize")
    if legalise_op is None:
        raise CompileError(f"{origin}: {call.op.name} has no TOPI kernel")
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        with builder.dataflow():
            lowered = builder.emit_output(legalise_op(builder, call))
        builder.emit_func_output(lowered)
    module = builder.get()
    known = dict(zip(call.args, arguments, strict=True))
    for arg, argument in zip(call.args, arguments, strict=True):
        if isinstance(arg, relax.Tuple):
            known.update(zip(arg.fields, argument, strict=True))
    blocks: list[Block] = []
    for binding in bindings_of(module["main"]):
        value = binding.value
        if isinstance(value, relax.Call) and value.op.name == "relax.call_tir":
            kernel = module[value.args[0].name_hint]
            assert isinstance(kernel, tirx.PrimFunc)
            types = binding.var.ty.fields if isinstance(binding.var.ty, relax.TupleType) else [binding.var.ty]
            results = [Tensor(name, _shape(ty), str(ty.dtype)) for ty in types]
            operands = [_value(arg, known) for arg in value.args[1].fields]
            blocks += read_kernel(kernel, operands, results, origin)
            known[binding.var] = tuple(results) if len(results) > 1 else results[0]
        elif isinstance(value, relax.Call):
            inner, known[binding.var] = call_blocks(value, [_value(arg, known) for arg in value.args], name, origin)
            blocks += inner
        else:
            known[binding.var] = _value(value, known)
    return blocks, known[module["main"].body.body]


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


def _shape(type_: Any) -> tuple[int, ...]:
    return tuple(int(extent) for extent in type_.shape)
