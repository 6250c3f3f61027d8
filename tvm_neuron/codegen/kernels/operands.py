"""choose_operands, separate_operands: as what the PE array reads its operands, and copies cast for it alone."""

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from tvm_neuron.codegen.integers import is_integer
from tvm_neuron.codegen.kernels.compared import compared_tensors
from tvm_neuron.codegen.kernels.storage_dtypes import turned_dtypes
from tvm_neuron.codegen.precision import Precision, Precisions
from tvm_neuron.errors import UnschedulableError
from tvm_neuron.hw import Device
from tvm_neuron.isa.dtypes import MATMUL_DTYPES, device_dtype
from tvm_neuron.schedule.expr import Axis, Index, Load
from tvm_neuron.schedule.kernel import Contraction, Kernel, Operand, Product, Transposition
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor


def choose_operands(kernels: list[Kernel], precisions: Precisions, device: Device) -> list[Kernel]:
    """The kernels with the dtype in which each contraction multiplies.

    Raises:
        UnschedulableError: float32 is asked of a PE array that does not take it.
    """
    found: list[Kernel] = []
    for kernel in kernels:
        if isinstance(kernel.root, Contraction | Product):
            origin = kernel.origins[0]
            precision = precisions.of(origin.name)
            is_sum = isinstance(kernel.root, Product) and kernel.root.is_sum
            is_sum |= _adds_few(kernel, device)
            dtype = "float32" if is_sum else _operand_dtype(kernel, precision)
            if device.fp32_matmul_passes and isinstance(kernel.root, Contraction) and _only_moves(kernel.root):
                dtype = precision.stored
            if dtype == "float32" and not device.fp32_matmul_passes:
                reason = (
                    f"the PE array of {device.name} multiplies {' and '.join(MATMUL_DTYPES)}, and float32 is asked of "
                    f"it: take another precision than none, or a device that multiplies float32"
                )
                raise UnschedulableError(f"{origin}: {reason}", origin.name, reason)
            kernel = replace(kernel, root=replace(kernel.root, dtype=dtype))
        found.append(kernel)
    return found


def separate_operands(
    kernels: list[Kernel], partition_of: dict[Tensor, int], precisions: Precisions
) -> list[Kernel]:
    """The kernels; the PE array reads a cast copy of what others read in another dtype.

    A tensor that only the PE array reads is written in its dtype at once, and one that comes from device memory is
    cast on its way into SBUF; neither needs a copy.
    """
    others = _needed_otherwise(kernels, precisions)
    return with_copies(kernels, partition_of, lambda kernel, data: _needs_copy(kernel, data, others))


def with_copies(
    kernels: list[Kernel], partition_of: dict[Tensor, int], needs_copy: Callable[[Kernel, Tensor], bool],
    dtype_of: Callable[[Tensor], str] = lambda tensor: tensor.dtype,
) -> list[Kernel]:  # fmt: skip
    """The kernels; where one `needs_copy` of a tensor, the PE array reads a copy, made before the first that does.

    In the dtype of its operands; what it only transposes in `dtype_of` the result.
    """
    copies: dict[tuple[Tensor, str], Tensor] = {}
    found: list[Kernel] = []
    for kernel in kernels:
        for data in read_by_array(kernel):
            if not needs_copy(kernel, data):
                continue
            root = kernel.root
            dtype = root.dtype if isinstance(root, Contraction | Product) else dtype_of(kernel.out)
            copy = copies.get((data, dtype))
            if copy is None:
                copy = Tensor(f"{data.name}.{dtype}", data.shape, dtype)
                copies[data, dtype] = copy
                partition_of[copy] = partition_of[data]
                found.append(elementwise_copy(kernel, data, copy, partition_of[copy]))
            kernel = _with_copy(kernel, data, copy)
        found.append(kernel)
        for stale in [key for key in copies if key[0] is kernel.out]:  # made before this part of it was written
            del copies[stale]
    return found


def read_by_array(kernel: Kernel) -> tuple[Tensor, ...]:
    """The run-time tensors that the PE array multiplies or transposes."""
    return (kernel.root.source.tensor,) if isinstance(kernel.root, Transposition) else kernel.multiplied()


def _with_copy(kernel: Kernel, data: Tensor, copy: Tensor) -> Kernel:
    root = kernel.root
    if isinstance(root, Product):
        return replace(kernel, root=reading(root, data, copy))
    if isinstance(root, Transposition):
        return replace(kernel, root=replace(root, source=Operand(copy, root.source.maps)))
    assert isinstance(root, Contraction)
    return replace(kernel, root=replace(root, data=copy))


_MOST_MOVED = 512  # channels: of more, weights are a model's own, and many to look at


def _only_moves(root: Contraction) -> bool:
    """Whether the PE array only has channels of float32 change places and signs: then nothing needs to be rounded."""
    if root.data.dtype != "float32" or root.steps or root.scale or max(root.weights.shape) > _MOST_MOVED:
        return False
    sizes = np.abs(root.weights)
    return bool(((sizes == 0) | (sizes == 1)).all() and sizes.sum(axis=0).max() <= 1)


def _adds_few(kernel: Kernel, device: Device) -> bool:
    """Whether the PE array only adds up float32, of few columns: in float32, as other engines sum, it takes no longer.

    What the sum is multiplied by then may be the weights' one number.
    """
    root, passes = kernel.root, device.fp32_matmul_passes
    if not passes or not isinstance(root, Contraction) or root.data.dtype != "float32" or root.scale:
        return False
    columns = prod(axis.extent for axis in (*kernel.free, *root.steps))
    if columns * passes > device.matmul_min_cycles or max(root.weights.shape) > _MOST_MOVED:
        return False
    return bool(np.isin(root.weights, (0, root.weights.flat[np.argmax(root.weights != 0)])).all())


def _operand_dtype(kernel: Kernel, precision: Precision) -> str:
    """The dtype of both operands: float32 if either asks for it, then bfloat16, whose range holds float16."""
    asked = {precision.operand_dtype(tensor.dtype) for tensor in kernel.multiplied()}
    return next(dtype for dtype in ("float32", "bfloat16", "float16") if dtype in asked)


def reading(root: Product, data: Tensor, copy: Tensor) -> Product:
    """The product with `copy` in the place of one of its operands (or of both)."""

    def changed(operand: Operand) -> Operand:
        return Operand(copy, operand.maps) if operand.tensor is data else operand

    return replace(root, stationary=changed(root.stationary), moving=changed(root.moving))


def _needs_copy(kernel: Kernel, data: Tensor, others: dict[Tensor, str]) -> bool:
    if data.kind in ("input", "output") and all(load.tensor is not data for load in kernel.operand_loads()):
        return False  # it is cast as it is loaded
    if isinstance(kernel.root, Transposition):
        return False  # it leaves the array in the dtype of its result
    assert isinstance(kernel.root, Contraction | Product)
    return others.get(data, kernel.root.dtype) != kernel.root.dtype


def _needed_otherwise(kernels: list[Kernel], precisions: Precisions) -> dict[Tensor, str]:
    """The dtype in which a tensor is kept that not only the PE array reads, or not in one dtype."""
    writer = {kernel.out: kernel for kernel in kernels}
    multiplied: dict[Tensor, set[str]] = {}
    found: dict[Tensor, str] = {}
    for kernel in kernels:
        read_else = set(kernel.sources()) - {kernel.out}  # what it moves within a tensor needs no dtype of its own
        if isinstance(kernel.root, Contraction | Product):
            read_else = {load.tensor for load in kernel.operand_loads()}
            for tensor in kernel.multiplied():
                dtypes = multiplied.setdefault(tensor, set())
                dtypes.add(kernel.root.dtype)
                if len(dtypes) > 1:
                    read_else.add(tensor)
        for tensor in read_else:
            origin = writer.get(tensor, kernel).origins[-1]
            found.setdefault(tensor, precisions.of(origin.name).dtype_of(tensor.dtype))
    found |= {tensor: "float32" for tensor, dtypes in multiplied.items() if dtypes == {"float32"}}  # a copy is no more
    compared = {tensor: _compared_dtype(tensor) for tensor in compared_tensors(kernels) & found.keys()}
    return found | compared | turned_dtypes(kernels)


def _compared_dtype(tensor: Tensor) -> str:
    """That of what it is compared with: a maximum of a float16 model's values, say, is kept in float32."""
    crosses = tensor.kind in ("input", "output")
    return device_dtype(tensor.dtype) if crosses or is_integer(tensor.dtype) else "float32"


def elementwise_copy(reader: Kernel, source: Tensor, target: Tensor, dim: int) -> Kernel:
    """A kernel that copies a tensor for `reader`, converting its dtype; `dim` lies on the partitions."""
    axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(source.shape))
    return Kernel(
        origins=reader.origins[:1],
        out=target,
        out_maps=tuple(Linear(0, {axis: 1} if axis.extent > 1 else {}) for axis in axes),
        channel=axes[dim],
        free=tuple(axis for d, axis in enumerate(axes) if d != dim and axis.extent > 1),
        expr=Load(source, tuple(Index(axis) for axis in axes)),
    )
