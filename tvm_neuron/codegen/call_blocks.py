"""call_blocks: one operator as blocks, through its TOPI kernel; equal calls are legalised and read once."""

from hashlib import sha256
from typing import Any

import tvm
from tvm import relax, tirx

from tvm_neuron.codegen.integers import is_integer
from tvm_neuron.codegen.quiet_kernels import QUIET_KERNELS
from tvm_neuron.codegen.read_kernel import read_kernel
from tvm_neuron.codegen.template import Template, each_tensor
from tvm_neuron.codegen.zero_operands import ZERO_OPERANDS
from tvm_neuron.errors import CompileError, InternalError
from tvm_neuron.frontend.kernels import attributes
from tvm_neuron.frontend.origin import bindings_of
from tvm_neuron.partition.spans import Spans, span_of_array
from tvm_neuron.program import Origin
from tvm_neuron.runtime.tensors import as_numpy
from tvm_neuron.schedule.graph import Block
from tvm_neuron.schedule.tensor import Tensor

_LARGEST_BY_VALUE = 16
"""Floating constants of more elements are operands like any other: no kernel depends on their values."""
_KERNELS = QUIET_KERNELS | ZERO_OPERANDS
_MOST_TEMPLATES = 4096
_templates: dict[str, Template] = {}


def call_blocks(call: relax.Call, arguments: list[Any], name: str, origin: Origin) -> tuple[list[Block], Any]:
    """The blocks of one operator and the tensor (or tuple of tensors) that they make, called after `name`.

    Raises:
        CompileError: it has no TOPI kernel, or one that can't be read.
    """
    abstract, key = _abstract(call)
    spans = known_spans(arguments)
    key = f"{key} {spans}"
    if key not in _templates:
        if len(_templates) >= _MOST_TEMPLATES:
            _templates.clear()
        _templates[key] = _read(abstract, spans, origin)
    return _templates[key].blocks_for(arguments, name, origin)


def value_of(expr: Any, values: dict[Any, Any]) -> Any:
    """What an operand stands for: a tensor, a tuple of tensors, or None for a shape."""
    if isinstance(expr, relax.Tuple):
        return tuple(value_of(field, values) for field in expr.fields)
    if isinstance(expr, relax.TupleGetItem):
        return value_of(expr.tuple_value, values)[expr.index]
    if isinstance(expr, tvm.ir.GenericConst):
        array = as_numpy(expr.value)
        return Tensor("constant", array.shape, str(array.dtype), "temp", array, span=span_of_array(array))
    return values.get(expr)


def _abstract(call: relax.Call) -> tuple[relax.Call, str]:
    """The call of variables instead of what it is given, and the text that tells it from other such calls."""
    variables: dict[Any, relax.Var] = {}
    texts: list[str] = []
    args = [_abstract_operand(arg, variables, texts) for arg in call.args]
    abstract = relax.Call(call.op, args, call.attrs, call.ty_args, ret_ty=call.ty)
    return abstract, f"{call.op.name} {attributes(call)} {call.ty_args} {call.ty} {texts}"


def _abstract_operand(arg: Any, variables: dict[Any, relax.Var], texts: list[str]) -> Any:
    """The variable for `arg`, or `arg` where its value counts; adds to `variables` and `texts`."""
    if isinstance(arg, relax.Tuple):
        texts.append(f"tuple of {len(arg.fields)}")
        return relax.Tuple([_abstract_operand(field, variables, texts) for field in arg.fields])
    if isinstance(arg, tvm.ir.GenericConst) and _counts_by_value(arg):
        texts.append(f"{arg.ty} {sha256(as_numpy(arg.value).tobytes()).hexdigest()}")
        return arg
    if isinstance(arg, relax.Var | tvm.ir.GenericConst):
        if arg not in variables:
            variables[arg] = relax.Var(f"operand{len(variables)}", arg.ty)
        texts.append(f"{variables[arg].name} {arg.ty}")
        return variables[arg]
    texts.append(f"{arg} {arg.ty}")
    return arg


def _counts_by_value(constant: tvm.ir.GenericConst) -> bool:
    array = as_numpy(constant.value)
    return array.dtype.kind in "iub" or array.size <= _LARGEST_BY_VALUE


def known_spans(arguments: list[Any]) -> Spans:
    """Those of the arguments; none where a run-time operand may hold fractions, as then so may the result.

    Templates of most operators so depend on no values of weights.
    """
    flat = [tensor for arg in arguments for tensor in (arg if isinstance(arg, tuple) else (arg,)) if tensor is not None]
    if any(tensor.value is None and tensor.span is None and not is_integer(tensor.dtype) for tensor in flat):
        return ()
    found: Spans = each_tensor(lambda tensor: tensor.span, tuple(arguments))
    return found


def _read(call: relax.Call, spans: Spans, origin: Origin) -> Template:
    legalise_op = _KERNELS.get(call.op.name) or call.op.get_attr("FLegalize")
    if legalise_op is None:
        raise CompileError(f"{origin}: {call.op.name} has no TOPI kernel")
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        with builder.dataflow():
            lowered = builder.emit_output(_legalised(legalise_op, builder, call, origin))
        builder.emit_func_output(lowered)
    module = builder.get()
    spans = spans or (None,) * len(call.args)
    operands = [_placeholder(arg.ty, span) for arg, span in zip(call.args, spans, strict=True)]
    known = dict(zip(call.args, operands, strict=True))
    for arg, operand in zip(call.args, operands, strict=True):
        if isinstance(arg, relax.Tuple):
            known.update(zip(arg.fields, operand, strict=True))
    blocks: list[Block] = []
    for binding in bindings_of(module["main"]):
        value = binding.value
        if isinstance(value, relax.Call) and value.op.name == "relax.call_tir":
            kernel = module[value.args[0].name_hint]
            assert isinstance(kernel, tirx.PrimFunc)
            types = binding.var.ty.fields if isinstance(binding.var.ty, relax.TupleType) else [binding.var.ty]
            results = [Tensor("", shape_of(ty), str(ty.dtype)) for ty in types]
            blocks += read_kernel(kernel, [value_of(arg, known) for arg in value.args[1].fields], results, origin)
            known[binding.var] = tuple(results) if len(results) > 1 else results[0]
        elif isinstance(value, relax.Call):
            if value.op == call.op:  # which its legalisation gives back where it knows no kernel
                raise CompileError(f"{origin}: TVM has no kernel of {call.op.name} with these attributes")
            inner, known[binding.var] = call_blocks(value, [value_of(arg, known) for arg in value.args], "", origin)
            blocks += inner
        else:
            known[binding.var] = value_of(value, known)
    return Template(operands, blocks, known[module["main"].body.body])


def _legalised(legalise_op: Any, builder: relax.BlockBuilder, call: relax.Call, origin: Origin) -> relax.Expr:
    try:
        return legalise_op(builder, call)
    except (InternalError, tvm.error.InternalError) as error:  # TVM's, for dtypes that its kernel lacks
        raise CompileError(f"{origin}: TVM has no kernel of it here: {str(error).splitlines()[-1]}") from error


def _placeholder(type_: Any, span: Any) -> Any:
    """The tensor, or tuple of tensors, that stands for an operand; None for a shape."""
    if isinstance(type_, relax.TupleType):
        spans = span or (None,) * len(type_.fields)
        return tuple(_placeholder(field, inner) for field, inner in zip(type_.fields, spans, strict=True))
    if not isinstance(type_, relax.TensorType):
        return None
    return Tensor("operand", shape_of(type_), str(type_.dtype), span=span)


def shape_of(type_: Any) -> tuple[int, ...]:
    """The static shape of a tensor's type."""
    return tuple(int(extent) for extent in type_.shape)
