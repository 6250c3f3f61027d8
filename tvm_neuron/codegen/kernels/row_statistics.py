"""row_statistics: the mean of each row and the variance around it in one pass, where that takes engines less time."""

from collections.abc import Mapping
from dataclasses import replace

from tvm_neuron.codegen.emit.statistics import statistics_cycles
from tvm_neuron.codegen.emit.vector import MAX_TILE_ELEMS
from tvm_neuron.codegen.kernels.norms import Norm, norm_of
from tvm_neuron.codegen.kernels.storage_dtypes import choose_dtypes
from tvm_neuron.codegen.precision import Precisions
from tvm_neuron.hw import Device
from tvm_neuron.isa import Activation, ActivationReduce, Affine, Instruction, TensorReduce, Tile
from tvm_neuron.schedule.expr import Apply, Axis, Expr, Index, Load, Num, rewrite
from tvm_neuron.schedule.kernel import ROOT, Kernel, Reduction, Statistics
from tvm_neuron.schedule.linear import Linear
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import readers_of, writers_of
from tvm_neuron.sim.clock import clock_hz, duration_ps

_MEAN, _VARIANCE = range(2)
_ROW_SHARE = 8  # 1 / this of SBUF at most for a row: it is never cut


def row_statistics(
    kernels: list[Kernel], partition_of: dict[Tensor, int], precisions: Precisions, device: Device
) -> list[Kernel]:
    """The kernels; those of norms as one that makes statistics, and what is computed from these."""
    writers, readers = writers_of(kernels), readers_of(kernels)
    became: dict[Kernel, list[Kernel]] = {}
    values: dict[Tensor, Tensor] = {}  # the statistics of which each sum of squares is now read
    counts: dict[Tensor, int] = {}
    means: dict[Tensor, Tensor] = {}  # the statistics that are now read in place of a mean with the other sign
    dtypes = choose_dtypes(kernels, precisions)
    for spread in kernels:
        norm = norm_of(spread, writers, readers)
        if norm is None or norm.mean in became or 4 * norm.count * _ROW_SHARE > device.sbuf_bytes_per_partition:
            continue
        if _once_ps(norm, device) > _twice_ps(norm, dtypes, device):
            continue
        made = _statistics(norm)
        partition_of[made.out] = partition_of[norm.mean.out]
        became[norm.mean] = [made, _from(norm.mean, made.out, _MEAN, norm.count)]
        became[norm.squares] = []
        became[spread] = [_from(spread, made.out, _VARIANCE, norm.count)]
        if spread.expr is ROOT and all(_is_operand(spread.out, reader) for reader in readers.get(spread.out, ())):
            became[spread] = []
            values[spread.out], counts[spread.out] = made.out, norm.count
        others = [reader for reader in readers.get(norm.mean.out, ()) if reader is not norm.squares]
        if all(_is_operand(norm.mean.out, k) and _takes_mean(k.expr, norm.mean.out) for k in others):
            became[norm.mean] = [made]
            means[norm.mean.out] = made.out
    if not became:
        return kernels

    def leaf(part: Num | Index | Load) -> Expr:
        if not isinstance(part, Load) or part.tensor not in values:
            return part
        load = Load(values[part.tensor], (*part.indices, Num(_VARIANCE)))
        return Apply("multiply", (load, Num(float(counts[part.tensor]))))

    def rewritten(kernel: Kernel) -> Kernel:
        sources = set(kernel.sources())
        expr = kernel.expr if values.keys().isdisjoint(sources) else rewrite(kernel.expr, leaf)
        expr = expr if means.keys().isdisjoint(sources) else _subtracted(expr, means)
        return kernel if expr is kernel.expr else replace(kernel, expr=expr)

    return [rewritten(part) for kernel in kernels for part in became.get(kernel, [kernel])]


def _is_operand(tensor: Tensor, reader: Kernel) -> bool:
    """Whether the reader only computes with the tensor, and may as well with what it is computed from."""
    loads = sum(load.tensor is tensor for load in reader.operand_loads())
    return not reader.by_dma and loads == [*reader.sources()].count(tensor)


def _takes_mean(expr: Expr, mean: Tensor) -> bool:
    """Whether the mean with the other sign is only added before a multiplication: POOL does both at once, and may as
    well subtract the mean."""
    match expr:
        case Apply("multiply", (Apply("add", (inner, Load(tensor))), factor)) if tensor is mean:
            return _takes_mean(inner, mean) and _takes_mean(factor, mean)
        case Apply(_, args):
            return all(_takes_mean(arg, mean) for arg in args)
    return not (isinstance(expr, Load) and expr.tensor is mean)


def _subtracted(expr: Expr, means: Mapping[Tensor, Tensor]) -> Expr:
    """What adds means with the other sign, as what subtracts those of statistics."""
    match expr:
        case Apply("add", (inner, Load(tensor, indices))) if tensor in means:
            mean = Load(means[tensor], (*indices, Num(_MEAN)))
            return Apply("subtract", (_subtracted(inner, means), mean))
        case Apply(op, args):
            return Apply(op, tuple(_subtracted(arg, means) for arg in args))
    return expr


def _once_ps(norm: Norm, device: Device) -> int:
    """What the rows of each partition take where POOL makes statistics of one after the other."""
    return duration_ps(norm.rows * statistics_cycles(norm.count, device), clock_hz(device, "pool"))


def _twice_ps(norm: Norm, dtypes: Mapping[Tensor, str], device: Device) -> int:
    """The same where POOL adds them up, and then ACT makes squares whose sums it keeps, or which POOL adds up as well.

    Each waits for the one before.
    """
    assert isinstance(norm.mean.root, Reduction)
    rows, count, squares = norm.rows, norm.count, dtypes[norm.squares.out]
    elems, total, totals = rows * count, _tile("float32", (1, 1)), _tile("float32", (1, rows))
    each = [_tile(dtype, (count, rows), (1, count)) for dtype in (dtypes[norm.mean.root.load.tensor], squares)]
    added, squared = (_ps(TensorReduce(result=totals, source=tile, op="add", axes=1), device) for tile in each)
    row, tile = _tile(squares, (1, count)), _tile(squares, (1, min(elems, MAX_TILE_ELEMS)))
    kept = rows * _ps(ActivationReduce(row, total, row, 1.0, 0.0, "square"), device)
    made = -(-elems // MAX_TILE_ELEMS) * _ps(Activation(tile, tile, 1.0, 0.0, "square"), device)
    return added + min(kept, made + squared)


def _tile(dtype: str, *dims: tuple[int, int]) -> Tile:
    return Tile("sbuf", dtype, Affine(), 1, Affine(), dims)


def _ps(instruction: Instruction, device: Device) -> int:
    return duration_ps(instruction.cost(device).busy_cycles, clock_hz(device, instruction.engine))


def _statistics(norm: Norm) -> Kernel:
    """The kernel that makes both."""
    mean, which = norm.mean, Axis("statistic", 2)
    assert isinstance(mean.root, Reduction)
    out = Tensor(f"{norm.spread.out.name}.statistics", (*mean.out.shape, which.extent), "float32")
    root = Statistics(mean.root.load, "statistics", mean.root.axes)
    maps = (*mean.out_maps, Linear(0, {which: 1}))
    return replace(mean, out=out, out_maps=maps, free=(*mean.free, which), expr=ROOT, root=root)


def _from(kernel: Kernel, statistics: Tensor, which: int, count: int) -> Kernel:
    """What a kernel makes of a sum, made of the statistics."""
    load = Load(statistics, (*(part.expr() for part in kernel.out_maps), Num(which)))
    value = Apply("multiply", (load, Num(float(count))))
    return replace(kernel, expr=rewrite(kernel.expr, lambda part: value if part is ROOT else part), root=None)
