"""How much room for temporary tiles the arithmetic of a kernel takes."""

from collections.abc import Callable
from math import prod

from tvm_neuron.allocation.layouts import aligned
from tvm_neuron.codegen.emit.arithmetic import Arithmetic
from tvm_neuron.codegen.emit.targets import Operand
from tvm_neuron.isa import Affine, Instruction, Tile
from tvm_neuron.isa.dtypes import device_dtype
from tvm_neuron.isa.tile import Dims
from tvm_neuron.schedule.expr import Axis, Expr, Load, axes_of
from tvm_neuron.schedule.kernel import ROOT, Kernel
from tvm_neuron.schedule.tensor import Tensor


class Nowhere:
    """A builder and scratch memory that only keep what is emitted, and how much memory is taken."""

    def __init__(self) -> None:
        self.bytes = 0
        self.emitted: list[Instruction] = []

    def emit(self, instruction: Instruction) -> None:
        """Takes the next instruction."""
        self.emitted.append(instruction)

    def tile(self, partitions: int, dims: Dims) -> Tile:
        """A new float32 tile."""
        self.bytes += temporary_bytes(dims)
        return Tile("sbuf", "float32", Affine(), partitions, Affine(), dims)


def temporary_bytes(dims: Dims) -> int:
    """Bytes of each partition that a temporary tile takes."""
    return aligned(4 * prod(count for _, count in dims))


def bytes_taken(expr: Expr, shape: tuple[int, Dims], resolve: Callable[[Load], Operand], dtype: str) -> int:
    """Bytes of each partition that all temporary tiles of an expression take, with a result of `dtype`.

    The other arguments are those of `Arithmetic`.
    """
    nowhere = Nowhere()
    partitions, dims = shape
    result = Tile("sbuf", dtype, Affine(), partitions, Affine(), dims)
    Arithmetic(nowhere, nowhere, shape, resolve).store(expr, result)
    return nowhere.bytes


def most_bytes_taken(kernel: Kernel, most_elems: int, row_elems: int) -> int:
    """As many at most, for tiles of up to `most_elems`, where rows of `row_elems` and more are tiles of their own."""
    whole, single = ((1, most_elems),), ((1, 1),)
    free = {axis for axis in kernel.free if axis.extent > 1}
    inner = innermost(kernel)
    by_row = {inner} if kernel.root is None and inner is not None and inner.extent >= row_elems else free

    def resolve(load: Load) -> Operand:
        # a run-time operand that is the same along a row is one value for each partition; a constant is repeated
        axes = by_row if load is not ROOT and load.tensor.value is None else free
        is_single = load is not ROOT and not axes & set(axes_of(load))
        return Tile("sbuf", _dtype_like(load.tensor), Affine(), 1, Affine(), single if is_single else whole)

    return bytes_taken(kernel.expr, (1, whole), resolve, _dtype_like(kernel.out))


def _dtype_like(tensor: Tensor) -> str:
    """int32 for what is kept as such; other dtypes take the same temporaries as float32 does."""
    return "int32" if tensor.value is None and device_dtype(tensor.dtype) == "int32" else "float32"


def innermost(kernel: Kernel) -> Axis | None:
    """The innermost free axis that there is more than one of."""
    return next((axis for axis in reversed(kernel.free) if axis.extent > 1), None)
