"""guard_rows: what makes 0 of a softmax's NaN asks once for each row, not of every element.

torch exports attention so: a row that is masked as a whole is NaN, and becomes 0. All elements of a row are divided by
its sum, and are NaN together: where the sum is no finite number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from tvm_neuron.codegen.kernels.same_rows import plain, read_maps, renamed, renaming
from tvm_neuron.schedule.expr import Apply, Expr, Load, Num
from tvm_neuron.schedule.graph import linear_indices
from tvm_neuron.schedule.kernel import ROOT, Kernel, Reduction, Transposition
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.uses import readers_of, writers_of

_LARGEST = 2.0**128 - 2.0**104  # of float32


@dataclass(frozen=True)
class _Softmax:
    """What divides exponentials by the sum of their row."""

    quotient: Kernel
    exponential: Load
    total: Load
    sums: Kernel


def guard_rows(kernels: list[Kernel], partition_of: dict[Tensor, int]) -> list[Kernel]:
    """The kernels; where one makes 0 of NaN, the softmax that it reads does by row, if nothing else reads that."""
    writers, readers = writers_of(kernels), readers_of(kernels)
    became: dict[Kernel, Sequence[Kernel]] = {}
    for kernel in kernels:
        inner = _guarded(kernel.expr)
        if inner is None:
            continue
        softmax = _softmax_of(kernel, inner, writers, readers)
        if softmax is None or softmax.quotient in became:
            continue
        if softmax.quotient is not kernel:
            became[kernel] = [replace(kernel, expr=inner)]
        became[softmax.quotient] = _by_row(softmax, partition_of)
    return [part for kernel in kernels for part in became.get(kernel, [kernel])]


def _guarded(expr: Expr) -> Expr | None:
    """What the expression is if that is a number, where it else is 0."""
    match expr:
        case Apply("select", (Apply("is_le", (x, Num(limit))), other, Num(0))) if x == other and limit == inf:
            return x
    return None


def _softmax_of(
    kernel: Kernel, inner: Expr, writers: Mapping[Tensor, Sequence[Kernel]], readers: Mapping[Tensor, Sequence[Kernel]]
) -> _Softmax | None:
    """The softmax whose elements the kernel guards, its own or all of another one's that it alone reads."""
    if isinstance(inner, Apply):
        return _as_softmax(kernel, inner, writers)
    if isinstance(kernel.root, Transposition) and inner is ROOT:
        source = kernel.root.source.tensor
    elif kernel.root is None and inner is not ROOT and isinstance(inner, Load):
        source = inner.tensor
    else:
        return None
    if source.kind != "temp" or len(writers.get(source, ())) != 1 or readers[source] != [kernel]:
        return None
    return _as_softmax(writers[source][0], writers[source][0].expr, writers)


def _as_softmax(kernel: Kernel, expr: Expr, writers: Mapping[Tensor, Sequence[Kernel]]) -> _Softmax | None:
    match expr:
        case Apply("divide", (Load() as exponential, Load() as total)) if kernel.root is None and not kernel.by_dma:
            makers = [writers.get(load.tensor, ()) for load in (exponential, total)]
        case _:
            return None
    if any(len(each) != 1 for each in makers):
        return None
    (made,), (sums,) = makers
    is_positive = made.root is None and isinstance(made.expr, Apply) and made.expr.op == "exp"
    root = sums.root
    if not is_positive or not isinstance(root, Reduction) or root.combine != "add" or sums.expr is not ROOT:
        return None
    own, there = linear_indices(exponential.indices), linear_indices(total.indices)
    if own is None or there is None or root.load.tensor is not exponential.tensor:
        return None
    by = renaming(read_maps(sums), own)
    is_its = by is not None and renamed(sums.out_maps, by) == plain(there)
    return _Softmax(kernel, exponential, total, sums) if is_its else None


def _by_row(softmax: _Softmax, partition_of: dict[Tensor, int]) -> list[Kernel]:
    """The reciprocals of the sums, whether these are numbers above 0, and the quotient by both.

    Quotients by any other sum are 0 or NaN. Divided by the largest number, a sum leaves itself, but NaN if infinite: so
    one instruction tells.
    """
    sums = softmax.sums
    total = Load(sums.out, tuple(part.expr() for part in sums.out_maps))
    inverse = _row(sums, "inverse", Apply("divide", (Num(1.0), total)))
    finite = _row(sums, "finite", Apply("is_gt", (Apply("mod", (total, Num(_LARGEST))), Num(0.0))))
    for kernel in (inverse, finite):
        partition_of[kernel.out] = partition_of[sums.out]
    factor, is_finite = (replace(softmax.total, tensor=kernel.out) for kernel in (inverse, finite))
    product = Apply("multiply", (softmax.exponential, factor))
    guarded = Apply("select", (is_finite, product, Num(0.0)))
    return [inverse, finite, replace(softmax.quotient, expr=guarded)]


def _row(sums: Kernel, name: str, expr: Expr) -> Kernel:
    return replace(sums, out=Tensor(f"{sums.out.name}.{name}", sums.out.shape, "float32"), expr=expr, root=None)
