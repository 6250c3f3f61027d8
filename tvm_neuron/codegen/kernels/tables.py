"""move_tables: constants along free axes that are too large to lie beside a kernel are tensors of their own."""

from dataclasses import replace

from tvm_neuron.codegen.emit.positions import follows_channel, positional
from tvm_neuron.schedule.expr import Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor

LARGE_BYTES = 8192  # of each partition


def move_tables(kernels: list[Kernel], partition_of: dict[Tensor, int]) -> list[Kernel]:
    """The kernels; a DMA before its reader brings in each such constant, which may then be spilled as tensors are."""
    found: list[Kernel] = []
    for kernel in kernels:
        for load in [] if kernel.by_dma else list(positional(kernel)):
            each = load.tensor.elems * 4 // (128 if follows_channel(load, kernel) else 1)
            if each > LARGE_BYTES:
                kernel = _move(kernel, load, partition_of, found)
        found.append(kernel)
    return found


def _move(kernel: Kernel, load: Load, partition_of: dict[Tensor, int], found: list[Kernel]) -> Kernel:
    follows = follows_channel(load, kernel)
    free = load.tensor.shape[1:] if follows else load.tensor.shape
    shape = (kernel.channel.extent, *free)
    tensor = Tensor("table", shape, "float32")
    partition_of[tensor] = 0
    axes = tuple(Axis(f"d{d}", extent) for d, extent in enumerate(shape))
    index: tuple[Expr, ...] = tuple(Index(axis) for axis in axes)
    found.append(
        Kernel(
            origins=kernel.origins[:1],
            out=tensor,
            out_maps=tuple(Linear(0, {axis: 1} if axis.extent > 1 else {}) for axis in axes),
            channel=axes[0],
            free=tuple(axis for axis in axes[1:] if axis.extent > 1),
            expr=Load(load.tensor, index if follows else index[1:]),
            by_dma=True,
        )
    )

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or part.tensor is not load.tensor:
            return part
        return Load(tensor, part.indices if follows else (Index(kernel.channel), *part.indices))

    return replace(kernel, expr=rewrite(kernel.expr, leaf))
