"""capability: whether one call could be scheduled on its own; what the partition asks before it gives a call to us."""

from hashlib import sha256
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_neuron.codegen.call_blocks import call_blocks, known_spans
from tvm_neuron.codegen.emit.vector import scratch_bytes, scratch_limit
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.codegen.simplify import make_kernels
from tvm_neuron.errors import CompileError, InternalError, UnschedulableError
from tvm_neuron.frontend.kernels import attributes
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.partition import Match, Refusal, Verdict
from tvm_neuron.partition.constraints import IsConstant
from tvm_neuron.partition.spans import Span, SpansOf
from tvm_neuron.program import Origin
from tvm_neuron.runtime.tensors import as_numpy
from tvm_neuron.schedule.graph import Graph
from tvm_neuron.schedule.rule import Rule
from tvm_neuron.schedule.tensor import Tensor


def verdict(
    call: relax.Call,
    is_constant: IsConstant,
    spans_of: SpansOf,
    rules: tuple[Rule, ...],
    device: Device,
    precisions: Precisions,
) -> Verdict:
    """Schedules the call's kernel as a subgraph of its own, with stand-ins for constants; reads it if all are that."""
    origin = Origin("", call.op.name.removeprefix("relax."))
    try:
        arguments = [argument(arg, is_constant, spans_of) for arg in call.args]
        blocks, result = call_blocks(call, arguments, "result", origin)
        results = result if isinstance(result, tuple) else (result,)
        for tensor in results:
            tensor.kind = "output"
        flat = [tensor for arg in arguments for tensor in (arg if isinstance(arg, tuple) else (arg,))]
        inputs = [tensor for tensor in flat if tensor is not None and tensor.value is None]
        if not inputs:  # it is computed at compile time
            return Match(tuple(tensor.span for tensor in results))
        kernels, _ = make_kernels(Graph(inputs, list(results), blocks), rules, device, precisions, is_quick=True)
    except UnschedulableError as error:
        return Refusal(error.reason)
    except InternalError:
        raise
    except CompileError as error:
        return Refusal(str(error))
    taken = scratch_bytes(kernels, device)
    if taken > scratch_limit(device):
        return Refusal(
            f"the values between the steps of its arithmetic take {taken} bytes of an SBUF partition; "
            f"{device.name} has {scratch_limit(device)} for them"
        )
    return Match(tuple(tensor.span for tensor in results))


def question(call: relax.Call, is_constant: IsConstant, spans_of: SpansOf) -> str:
    """What the verdict depends on: calls with the same question get the same answer."""
    operands = [f"{_known(arg, is_constant)} {arg.ty}" for arg in call.args]
    shapes = [str(arg) for arg in call.args if isinstance(arg, relax.ShapeExpr)]
    spans = known_spans([argument(arg, is_constant, spans_of) for arg in call.args])
    return f"{call.op.name} {attributes(call)} {operands} {spans} {shapes} {call.ty}"


def _known(arg: Any, is_constant: IsConstant) -> str:
    """What is known of an operand: nothing, that it is constant, or (whole numbers) its very value."""
    if isinstance(arg, tvm.ir.GenericConst):
        return f"constant {sha256(as_numpy(arg.value).tobytes()).hexdigest()}"
    return "constant" if is_constant(arg) else ""


def argument(arg: Any, is_constant: IsConstant, spans_of: SpansOf) -> Any:
    """The tensor, or tuple of tensors, that stands for an operand; None for a shape."""
    if isinstance(arg, relax.Tuple):
        return tuple(argument(field, is_constant, spans_of) for field in arg.fields)
    if isinstance(arg.ty, relax.TupleType):
        spans = spans_of(arg) or (None,) * len(arg.ty.fields)
        return tuple(_tensor(arg, ty, is_constant, span) for ty, span in zip(arg.ty.fields, spans, strict=True))
    (span,) = spans_of(arg) or (None,)
    return _tensor(arg, arg.ty, is_constant, span) if isinstance(arg.ty, relax.TensorType) else None


def _tensor(arg: Any, ty: relax.TensorType, is_constant: IsConstant, span: Span | None) -> Tensor:
    shape, dtype = tuple(int(extent) for extent in ty.shape), str(ty.dtype)
    if not is_constant(arg):
        return Tensor("operand", shape, dtype, "input", span=span)
    if isinstance(arg, tvm.ir.GenericConst):
        return Tensor("constant", shape, dtype, "temp", as_numpy(arg.value), span=span)
    one = np.ones((), DTYPES.get(dtype) or dtype)
    return Tensor("constant", shape, dtype, "temp", np.broadcast_to(one, shape), span=span)
