"""What each call of the language computes: arguments in, a `Result` that writes its tile out.

Shapes are [P, *N]: the first axis is the partitions. Every function raises KernelError for what it can't take.
"""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

from tvm_neuron.isa import (
    Activation,
    ActTensorScalar,
    DmaCopy,
    Memset,
    ScalarTensorTensor,
    Select,
    TensorCopy,
    TensorReduce,
    TensorScalar,
    TensorTensor,
    TensorTensorBits,
)
from tvm_neuron.isa.tile import MAX_FREE_DIMS
from tvm_neuron.nki.dtypes import dtype_name, of_number, promoted
from tvm_neuron.nki.index import Mask
from tvm_neuron.nki.operators import ACTIVATION, ALU, BITS, COMMUTATIVE, named
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import Result, Trace, current
from tvm_neuron.nki.view import ZERO, View

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def on_chip(what: str, *views: Any) -> None:
    """Refuses operands that an engine does not reach."""
    for view in views:
        if not isinstance(view, View):
            raise wrong(f"{what} takes tiles, not {type(view).__name__}")
        if view.tensor.memory == "hbm":
            raise wrong(f"{what} of {view}, which lies in device memory; engines read SBUF and PSUM: load it first")


def common_shape(views: Sequence[View]) -> tuple[int, ...]:
    """The shape that the views broadcast to."""
    rank = max(view.ndim for view in views)
    shapes = [view.padded(rank).shape for view in views]
    return tuple(max(counts) for counts in zip(*shapes, strict=True))


def elementwise(build: Any, views: dict[str, View], dtype: str, **fixed: Any) -> Result:
    """An instruction that treats each element alike."""
    shape = common_shape(list(views.values()))

    def write(target: View, mask: Mask | None) -> None:
        current().emit(build, {"result": target.fitted(shape), **views}, mask, **fixed)

    return Result(shape, dtype, "sbuf", write)


def tensor_tensor(data1: Any, data2: Any, op: Any, engine: Any = None) -> Result:
    """data1 op data2, elementwise; not both in PSUM."""
    on_chip("tensor_tensor", data1, data2)
    if data1.tensor.memory == data2.tensor.memory == "psum":
        raise wrong(f"tensor_tensor of {data1} and {data2}, both in PSUM; it reads one port: copy one to SBUF first")
    dtype = promoted(data1.tensor.dtype, data2.tensor.dtype)
    views = {"left": data1, "right": data2}
    if getattr(op, "__name__", op) in BITS:
        return elementwise(TensorTensorBits, views, dtype, op=named(op, BITS, "tensor_tensor"))
    return elementwise(TensorTensor, views, dtype, op=named(op, ALU, "tensor_tensor"))


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
    """(data op0 operand0) op1 operand1, operands numbers or [P, 1]; of numbers alone on Scalar by default."""
    on_chip("tensor_scalar", data)
    are_numbers = not isinstance(operand0, View) and not isinstance(operand1, View)
    is_scalar = engine == "scalar" or (engine in (None, "unknown") and are_numbers)
    return elementwise(
        ActTensorScalar if is_scalar else TensorScalar,
        {"source": data},
        data.tensor.dtype,
        scalar0=_scalar(operand0),
        scalar1=_scalar(operand1 if op1 is not None else 0.0),
        op0=named(op0, ALU, "tensor_scalar"),
        op1="bypass" if op1 is None else named(op1, ALU, "tensor_scalar"),
        reverse=int(bool(reverse0)) | int(bool(reverse1)) << 1,
    )


def scalar_tensor_tensor(
    data: Any, op0: Any, operand0: Any, op1: Any, operand1: Any, reverse0: bool = False, reverse1: bool = False
) -> Result:
    """(data op0 operand0) op1 operand1, the first operand a number or [P, 1], the second a tile."""
    on_chip("scalar_tensor_tensor", data, operand1)
    name0, name1 = named(op0, ALU, "scalar_tensor_tensor"), named(op1, ALU, "scalar_tensor_tensor")
    if (reverse0 and name0 not in COMMUTATIVE) or (reverse1 and name1 not in COMMUTATIVE):
        raise wrong("scalar_tensor_tensor with reversed operands of an operator that does not commute: split it")
    dtype = promoted(data.tensor.dtype, operand1.tensor.dtype)
    views = {"left": data, "right": operand1}
    return elementwise(ScalarTensorTensor, views, dtype, scalar0=_scalar(operand0), op0=name0, op1=name1)


def _scalar(value: Any) -> Any:
    """A number, or a view [P, 1]."""
    if not isinstance(value, View):
        return float(value)
    on_chip("a scalar operand", value)
    if prod(value.shape[1:]) != 1:
        raise wrong(f"{value} as a scalar operand; one is a number or [P, 1]")
    return value


def activation(op: Any, data: Any, bias: Any = None, scale: Any = 1.0) -> Result:
    """op(data * scale + bias); scale a number or [P, 1], bias [P, 1]."""
    on_chip("activation", data)
    bias = 0.0 if bias is None else bias
    function = named(op, ACTIVATION, "activation")
    views, dtype = {"source": data}, data.tensor.dtype
    return elementwise(Activation, views, dtype, scale=_scalar(scale), bias=_scalar(bias), function=function)


def binary(name: str, x: Any, y: Any) -> Result:
    """x op y of two tiles, or of a tile and a number: the instruction that fits."""
    if not isinstance(x, View) and not isinstance(y, View):
        raise wrong(f"{name} of two numbers; one operand is a tile")
    dtype = _dtype_of(x, y) if name not in COMPARISONS else "bool"
    if not isinstance(x, View) or not isinstance(y, View):
        data, number, is_reversed = (y, x, True) if isinstance(y, View) else (x, y, False)
        found = tensor_scalar(data, name, number, is_reversed)
    elif _is_column(y, x) or _is_column(x, y):
        data, column, is_reversed = (x, y, False) if _is_column(y, x) else (y, x, True)
        found = tensor_scalar(data, name, column, is_reversed)
    else:
        on_chip(name, x, y)
        if x.tensor.memory == y.tensor.memory == "psum":
            y = current().hold(tensor_copy(y))
            current().settle()
        found = tensor_tensor(x, y, name)
    return Result(found.shape, dtype, found.memory, found.write)


def _is_column(small: View, large: View) -> bool:
    column = small.padded(large.ndim).shape
    return column[:1] == large.shape[:1] and prod(column[1:]) == 1 < prod(large.shape[1:])


def _dtype_of(x: Any, y: Any) -> str:
    if isinstance(x, View) and isinstance(y, View):
        return promoted(x.tensor.dtype, y.tensor.dtype)
    return of_number(y, x.tensor.dtype) if isinstance(x, View) else of_number(x, y.tensor.dtype)


def unary(name: str, x: Any) -> Result:
    """A function of each element, on the Scalar engine."""
    return activation(name, x)


def tensor_copy(src: Any, engine: Any = None) -> Result:
    """The same values; by default on the Scalar engine out of PSUM, else on Vector."""
    on_chip("a copy", src)
    if engine == "scalar" or (engine in (None, "unknown") and src.tensor.memory == "psum"):
        return activation("copy", src)
    return elementwise(TensorCopy, {"source": src}, src.tensor.dtype)


def memset(shape: Sequence[int], value: Any, dtype: Any = "float32", engine: Any = None) -> Result:
    """One number everywhere."""
    wanted = tuple(int(count) for count in shape)

    def write(target: View, mask: Mask | None) -> None:
        current().emit(Memset, {"result": target.fitted(wanted)}, mask, value=float(value))

    return Result(wanted, dtype_name(dtype), "sbuf", write)


def reciprocal(data: Any) -> Result:
    """1 / data."""
    on_chip("reciprocal", data)
    return elementwise(
        TensorScalar,
        {"source": data},
        data.tensor.dtype,
        scalar0=1.0,
        scalar1=0.0,
        op0="divide",
        op1="bypass",
        reverse=1,
    )


def select(condition: Any, x: Any, y: Any) -> Result:
    """x where condition is not 0, else y."""
    on_chip("where", condition)
    held = [each if isinstance(each, View) else _filled(condition, each) for each in (x, y)]
    views = {"predicate": condition, "on_true": held[0], "on_false": held[1]}
    return elementwise(Select, views, promoted(held[0].tensor.dtype, held[1].tensor.dtype))


def _filled(like: View, value: Any) -> View:
    found = current().hold(memset(like.shape, value, "float32"))
    current().settle()
    return found


def tensor_reduce(op: Any, data: Any, axis: Any, negate: bool = False, keepdims: bool = False) -> Result:
    """op over free axes of data: [P, *N] without those axes, or with size 1 for them."""
    on_chip("tensor_reduce", data)
    axes = {int(each) % data.ndim for each in (axis if isinstance(axis, Sequence) else (axis,))}
    if 0 in axes and data.axes[0][0][1]:
        raise wrong(f"tensor_reduce of {data} over axis 0, the partitions; it reduces free axes: transpose it first")
    kept = [at for at in range(data.ndim) if at not in axes]
    shape = tuple(data.shape[at] if at in kept else 1 for at in range(data.ndim) if keepdims or at in kept)
    name = named(
        op, {key: value for key, value in ALU.items() if value in ("add", "max", "min", "multiply")}, "a reduction"
    )

    def write(target: View, mask: Mask | None) -> None:
        bounds = mask.bounds() if mask is not None else {}
        if any(low >= high for low, high in bounds.values()):
            return
        source = data.narrow(bounds).permuted([*kept, *sorted(axes)])
        cut = {place - len(kept): bounds[at - data.ndim] for place, at in enumerate(kept) if at - data.ndim in bounds}
        result = target.fitted(tuple(data.shape[at] for at in kept)).narrow(cut)
        _reduce(current(), result, source, name, len(axes))
        if negate:
            current().emit(
                TensorScalar, {"result": result, "source": result},
                scalar0=-1.0, scalar1=0.0, op0="multiply", op1="bypass", reverse=0,
            )  # fmt: skip

    return Result(shape, data.tensor.dtype, "sbuf", write)


def _reduce(trace: Trace, result: View, source: View, op: str, axes: int) -> None:
    """result[P, *A] = op over the last `axes` axes of source[P, *A, *B]."""
    last = source.axes[-axes:]
    joined = [last[0]]
    for step, count in last[1:]:
        before, have = joined[-1]
        if before == (0, 0, step[2] * count):
            joined[-1] = step, have * count
        else:
            joined.append((step, count))
    axes = len(joined)
    source = source.like(source.start, [*source.axes[: source.ndim - len(last)], *joined])
    wide = result.like(result.start, [*result.axes, *((ZERO, count) for _, count in joined)])
    if axes > MAX_FREE_DIMS:
        raise wrong(
            f"a reduction of {source} over {axes} axes; at most {MAX_FREE_DIMS} are possible: reduce in two steps"
        )
    trace.emit(partial(_reduction, op, axes), {"result": wide, "source": source}, kept=axes)


def _reduction(op: str, axes: int, result: Any, source: Any) -> TensorReduce:
    import dataclasses

    dims = result.dims[:-axes] or ((1, 1),)
    return TensorReduce(dataclasses.replace(result, dims=dims), source, op, axes)


def nc_matmul(
    stationary: Any, moving: Any, is_stationary_onezero: bool = False, is_moving_onezero: bool = False,
    is_transpose: bool = False,
) -> Result:  # fmt: skip
    """stationary[K, M].T @ moving[K, *N] in float32."""
    on_chip("nc_matmul", stationary, moving)
    if stationary.ndim != 2 or stationary.shape[0] != moving.shape[0]:
        raise wrong(f"nc_matmul of stationary {stationary} and moving {moving}; they are [K, M] and [K, *N]")
    for view in (stationary, moving):
        if view.tensor.memory != "sbuf":
            raise wrong(f"nc_matmul reads {view} in PSUM; its operands lie in SBUF: copy it first")
    shape = (stationary.shape[1], *moving.shape[1:])

    def put(is_first: bool, target: View, mask: Mask | None) -> None:
        current().product(target.fitted(shape), stationary, moving, is_first, mask)

    return Result(shape, "float32", "psum", partial(put, True), partial(put, False))


def nc_transpose(data: Any, engine: Any = None) -> Result:
    """[F, P] of data [P, F], on the Tensor engine."""
    on_chip("nc_transpose", data)
    if data.ndim != 2:
        raise wrong(f"a transposition of {data}; it takes [P, F]")
    if data.tensor.memory != "sbuf":
        raise wrong(f"nc_transpose reads {data} in PSUM; the Tensor engine reads SBUF: copy it first")
    shape = data.shape[::-1]

    def write(target: View, mask: Mask | None) -> None:
        trace = current()
        if mask is not None and mask.bounds():
            raise wrong("a transposition with a mask; slice its operand instead")
        trace.transpose(target.fitted(shape), data)

    return Result(shape, data.tensor.dtype, "psum", write)


def in_sbuf(view: View) -> View:
    """The values in SBUF."""
    if view.tensor.memory == "sbuf":
        return view
    trace = current()
    copy = tensor_copy(view)
    found = trace.tensor(copy.shape, copy.dtype, "sbuf")
    trace.do(copy, found)
    return found


def matmul(x: Any, y: Any, transpose_x: bool = False) -> Result:
    """x @ y, x [M, K] (or [K, M] with transpose_x), y [K, N]."""
    on_chip("matmul", x, y)
    x, y = in_sbuf(x), in_sbuf(y)
    if not transpose_x:
        trace = current()
        turned = nc_transpose(x)
        psum = trace.tensor(turned.shape, turned.dtype, "psum")
        trace.do(turned, psum)
        x = in_sbuf(psum)
    return nc_matmul(x, y)


def load(src: Any, dtype: Any = None) -> Result:
    """A tile in SBUF from device memory."""
    if not isinstance(src, View) or src.tensor.memory != "hbm":
        raise wrong(f"load of {src}; it loads tensors in device memory")
    return Result(src.shape, src.tensor.dtype, "sbuf", partial(_transfer, src))


def _transfer(src: View, target: View, mask: Mask | None) -> None:
    trace = current()
    ring = trace.ring(target.tensor.memory == "hbm")
    same = target if target.shape == src.shape else target.fitted(src.shape)
    trace.emit(DmaCopy, {"target": same, "source": src}, mask, ring=ring)


def dma_copy(src: Any) -> Result:
    """The same values between device memory and SBUF, either way."""
    if not isinstance(src, View) or src.tensor.memory == "psum":
        raise wrong(f"dma_copy of {src}; it reads device memory and SBUF")
    return Result(src.shape, src.tensor.dtype, "sbuf", partial(_transfer, src))


def store(dst: Any, value: Any, mask: Any = None) -> None:
    """Writes a tile to device memory."""
    if not isinstance(dst, View) or dst.tensor.memory != "hbm":
        raise wrong(f"store to {dst}; it stores to tensors in device memory")
    trace = current()
    trace.settle()
    if not isinstance(value, View):
        filled = trace.tensor(dst.shape, dst.tensor.dtype, "sbuf")
        trace.do(memset(dst.shape, value, dst.tensor.dtype), filled)
        value = filled
    value = in_sbuf(value)
    trace.do(dma_copy(value if value.elems < dst.elems else value.fitted(dst.shape)), dst, mask)


def broadcast_to(x: View, shape: tuple[int, ...]) -> View:
    """x with axes of size 1 repeated; a row is brought to all partitions by the Tensor engine."""
    trace = current()
    trace.settle()
    wide = x.padded(len(shape))
    if x.tensor.memory != "hbm" and wide.shape[0] == 1 < shape[0] <= trace.device.partitions:
        trace.start(x)
        return trace.spread(wide, shape[0]).widened(shape)
    return wide.widened(shape)


def loop_reduce(x: Any, op: Any, loop_indices: Sequence[Any]) -> Result:
    """x where all loops are in their first iteration, later dst op x."""
    on_chip("loop_reduce", x)
    is_first = all(int(index) == getattr(index, "first", 0) for index in loop_indices)
    name = named(op, ALU, "loop_reduce")

    def write(target: View, mask: Mask | None) -> None:
        if is_first:
            tensor_copy(x).write(target, mask)
        else:
            tensor_tensor(target.fitted(x.shape), x, name).write(target, mask)

    return Result(x.shape, x.tensor.dtype, "sbuf", write)
