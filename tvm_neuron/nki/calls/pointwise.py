"""Calls that treat each element alike: arithmetic, functions, copies, constants; and the scan."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tvm_neuron.isa import (
    Activation,
    ActivationReduce,
    ActTensorScalar,
    GpsimdMemset,
    GpsimdTensorTensor,
    Memset,
    Reciprocal,
    ScalarTensorTensor,
    TensorCopy,
    TensorScalar,
    TensorScalarBits,
    TensorScalarReduce,
    TensorTensor,
    TensorTensorBits,
    TensorTensorScan,
)
from tvm_neuron.isa.dtypes import DTYPES, WORDS
from tvm_neuron.isa.functions import WHOLE
from tvm_neuron.nki.calls.operands import elementwise, number, on_chip, one_in_sbuf, scalar
from tvm_neuron.nki.dtypes import dtype_name, promoted
from tvm_neuron.nki.emission import Result
from tvm_neuron.nki.index import Mask
from tvm_neuron.nki.operators import ACTIVATION, ALU, BITS, REDUCTIONS, named
from tvm_neuron.nki.rules import need_sbuf
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import current
from tvm_neuron.nki.view import View


def tensor_tensor(data1: Any, data2: Any, op: Any, engine: Any = None) -> Result:
    """data1 op data2, elementwise; not both in PSUM.

    If no engine is asked for, GpSimd takes powers, and sums and products of 32-bit whole numbers, exactly; Vector the
    others, in float32.
    """
    on_chip("tensor_tensor", data1, data2)
    one_in_sbuf("tensor_tensor", data1, data2)
    dtype = promoted(data1.tensor.dtype, data2.tensor.dtype)
    views = {"left": data1, "right": data2}
    if getattr(op, "__name__", op) in BITS:
        return elementwise(TensorTensorBits, views, dtype, op=named(op, BITS, "tensor_tensor"))
    name = named(op, ALU, "tensor_tensor")
    shape = elementwise(TensorTensor, views, dtype, op=name).shape

    def write(target: View, mask: Mask | None) -> None:
        are_whole = name in WHOLE and {target.tensor.dtype, data1.tensor.dtype, data2.tensor.dtype} <= set(WORDS)
        chosen = engine if engine not in (None, "unknown") else "gpsimd" if are_whole or name == "pow" else "vector"
        if chosen == "gpsimd":
            need_sbuf(f"{name} of {data1} and {data2} to {target}", target, data1, data2)
        build = GpsimdTensorTensor if chosen == "gpsimd" else TensorTensor
        elementwise(build, views, dtype, op=name).write(target, mask)

    return Result(shape, dtype, "sbuf", write)


def tensor_scalar(
    data: Any,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    engine: Any = None,
) -> Result:
    """(data op0 operand0) op1 operand1, operands numbers or [P, 1]; of numbers alone on Scalar by default.

    On bits op0 alone is an instruction, with a number.
    """
    on_chip("tensor_scalar", data)
    on_bits = [getattr(op, "__name__", op) in BITS for op in (op0, op1) if op is not None]
    if len(set(on_bits)) > 1:
        raise wrong(
            f"tensor_scalar of {data} with an operator on bits and one on numbers; both are of one kind: make two calls"
        )
    if on_bits[0]:
        first = _bits(data, op0, operand0, bool(reverse0))
        return first if op1 is None else tensor_scalar(current().hold(first), op1, operand1, reverse1, engine=engine)
    for operand in (operand0, operand1):
        _check_digits(data, operand)
    are_numbers = not isinstance(operand0, View) and not isinstance(operand1, View)
    is_scalar = engine == "scalar" or (engine in (None, "unknown") and are_numbers)
    return elementwise(
        ActTensorScalar if is_scalar else TensorScalar,
        {"source": data},
        data.tensor.dtype,
        scalar0=scalar(operand0),
        scalar1=scalar(operand1 if op1 is not None else 0.0),
        op0=named(op0, ALU, "tensor_scalar"),
        op1="bypass" if op1 is None else named(op1, ALU, "tensor_scalar"),
        reverse=int(bool(reverse0)) | int(bool(reverse1)) << 1,
    )


def _check_digits(data: View, operand: Any) -> None:
    """Refuses a whole number beside whole numbers that float32, in which the engines compute with it, has not."""
    is_whole = hasattr(operand, "__index__") and data.tensor.dtype in WORDS
    if is_whole and int(np.float32(int(operand))) != int(operand):
        raise wrong(
            f"{int(operand)} beside {data}, {data.tensor.dtype}; an engine takes a number as float32, which has "
            f"{int(np.float32(int(operand)))}: give a tile of it (nl.shared_constant) to tensor_tensor, which is exact"
        )


def _bits(data: View, op: Any, operand: Any, is_reversed: bool) -> Result:
    """An operation on the bits of whole numbers with those of one number."""
    name, told = named(op, BITS, "tensor_scalar"), getattr(op, "__name__", op)
    if is_reversed and "shift" in name:
        raise wrong(f"{told} of a number by a tile; the model shifts tiles: make a tile of the number (nki.isa.memset)")
    if not hasattr(operand, "__index__") or not -(2**31) <= operand < 2**32:
        raise wrong(f"{told} of a tile and {operand}; the model takes the bits of a whole number of 32 bits")
    return elementwise(TensorScalarBits, {"source": data}, data.tensor.dtype, scalar=int(operand) & 0xFFFFFFFF, op=name)


def scalar_tensor_tensor(
    data: Any, op0: Any, operand0: Any, op1: Any, operand1: Any, reverse0: bool = False, reverse1: bool = False
) -> Result:
    """(data op0 operand0) op1 operand1, the first operand a number or [P, 1], the second a tile.

    With reversed operands these are two instructions.
    """
    on_chip("scalar_tensor_tensor", data, operand1)
    _check_digits(data, operand0)
    one_in_sbuf("scalar_tensor_tensor", data, operand1)
    if reverse0 or reverse1:
        first = current().hold(tensor_scalar(data, op0, operand0, reverse0))
        return tensor_tensor(operand1, first, op1) if reverse1 else tensor_tensor(first, operand1, op1)
    dtype = promoted(data.tensor.dtype, operand1.tensor.dtype)
    views, ops = {"left": data, "right": operand1}, [named(op, ALU, "scalar_tensor_tensor") for op in (op0, op1)]
    return elementwise(ScalarTensorTensor, views, dtype, scalar0=scalar(operand0), op0=ops[0], op1=ops[1])


def activation(
    op: Any,
    data: Any,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: Any = None,
    reduce_cmd: Any = "reset_reduce",
) -> Result:
    """op(data * scale + bias), scale a number or [P, 1], bias [P, 1]; its sum goes to `reduce_res` if that is given.

    In Beta 1, a bias for each element, as TVM's target `trn` prints it, is added by Vector before.
    """
    on_chip("activation", data)
    if isinstance(bias, View) and prod(bias.shape[1:]) != 1:
        if not current().dialect.returns or bias.shape != data.shape:
            raise wrong(
                f"activation of {data} with bias {bias}; a bias is [{data.shape[0]}, 1], one number a partition: add a "
                "row or a tile of them with tensor_tensor before"
            )
        added = {"scalar0": scalar(scale), "op0": "multiply", "op1": "add"}
        both = elementwise(ScalarTensorTensor, {"left": data, "right": bias}, "float32", **added)
        data, bias, scale = current().hold(both), None, 1.0
    words: dict[str, Any] = {"scale": scalar(scale), "bias": scalar(0.0 if bias is None else bias)}
    words["function"] = named(op, ACTIVATION, "activation")
    if reduce_res is None:
        return elementwise(Activation, {"source": data}, data.tensor.dtype, **words)
    if reduce_cmd != "reset_reduce" or named(reduce_op, ALU, "activation") != "add":
        raise wrong(
            f"activation with reduce_cmd={reduce_cmd}, reduce_op={reduce_op}; the model has reset_reduce and add"
        )
    on_chip("reduce_res", reduce_res)
    return elementwise(ActivationReduce, {"source": data}, data.tensor.dtype, total=reduce_res, **words)


def activation_reduce(
    op: Any, data: Any, reduce_op: Any = "add", reduce_res: Any = None, bias: Any = None, scale: Any = 1.0
) -> Result:
    """op(data * scale + bias), and its sum to `reduce_res` [P, 1]."""
    return activation(op, data, bias, scale, reduce_op, reduce_res)


def tensor_scalar_reduce(
    data: Any, op0: Any, operand0: Any, reduce_op: Any, reduce_res: Any, reverse0: bool = False
) -> Result:
    """data op0 operand0, and its reduction over all free axes to `reduce_res` [P, 1]."""
    on_chip("tensor_scalar_reduce", data, reduce_res)
    _check_digits(data, operand0)
    return elementwise(
        TensorScalarReduce,
        {"source": data},
        data.tensor.dtype,
        total=reduce_res,
        scalar0=scalar(operand0),
        op0=named(op0, ALU, "tensor_scalar_reduce"),
        op1=named(reduce_op, REDUCTIONS, "tensor_scalar_reduce"),
        reverse=int(bool(reverse0)),
    )


def tensor_tensor_scan(
    data0: Any, data1: Any, initial: Any, op0: Any, op1: Any, reverse0: bool = False, reverse1: bool = False
) -> Result:
    """r[:, i] = (data0[:, i] op0 r[:, i - 1]) op1 data1[:, i], from `initial`, a number or [P, 1]."""
    on_chip("tensor_tensor_scan", data0, data1)
    _check_digits(data0, initial)
    if data0.ndim != 2 or data0.shape != data1.shape:
        raise wrong(f"tensor_tensor_scan of {data0} and {data1}; both are [P, N]")
    return elementwise(
        TensorTensorScan,
        {"left": data0, "right": data1},
        promoted(data0.tensor.dtype, data1.tensor.dtype),
        initial=scalar(initial),
        op0=named(op0, ALU, "tensor_tensor_scan"),
        op1=named(op1, ALU, "tensor_tensor_scan"),
        reverse=int(bool(reverse0)) | int(bool(reverse1)) << 1,
    )


def tensor_copy(src: Any, engine: Any = None) -> Result:
    """The same values; by default on the Scalar engine, whole numbers on Vector, which does not round them."""
    on_chip("a copy", src)
    if engine == "scalar" or (engine in (None, "unknown") and "float" in src.tensor.dtype):
        return activation("copy", src)
    return elementwise(TensorCopy, {"source": src}, src.tensor.dtype)


def memset(shape: Sequence[int], value: Any, dtype: Any = "float32", engine: Any = None) -> Result:
    """One number everywhere, by the Vector engine unless GpSimd is asked for."""
    wanted, everywhere = tuple(int(count) for count in shape), number("the value of a memset", value)

    def write(target: View, mask: Mask | None) -> None:
        _check_holds(target, everywhere)
        made = GpsimdMemset if engine == "gpsimd" and target.tensor.memory == "sbuf" else Memset
        current().emit(made, {"result": target.fitted(wanted)}, mask, value=everywhere)

    return Result(wanted, dtype_name(dtype), "sbuf", write)


def _check_holds(target: View, value: float) -> None:
    """Refuses numbers that a tile of whole ones can't hold, or that float32, which memset has, has not."""
    name = target.tensor.dtype
    kind = DTYPES[name]
    if kind.kind not in "iu":
        return
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    if not least <= value <= most or value != int(value):
        raise wrong(f"{value:g} in {target}, {name}: it holds whole numbers from {least} to {most}")
    if value not in (least, most) and float(np.float32(value)) != value:
        raise wrong(
            f"{int(value)} in {target}, {name}: the number of a memset is a float32, which has "
            f"{int(np.float32(value))}: load it (nl.shared_constant), or make it by shifts"
        )


def reciprocal(data: Any) -> Result:
    """1 / data."""
    on_chip("reciprocal", data)
    return elementwise(Reciprocal, {"source": data}, data.tensor.dtype)


def in_sbuf(view: View) -> View:
    """The values in SBUF."""
    if view.tensor.memory == "sbuf":
        return view
    trace = current()
    copy = tensor_copy(view)
    found = trace.tensor(copy.shape, copy.dtype, "sbuf")
    trace.do(copy, found)
    return found
