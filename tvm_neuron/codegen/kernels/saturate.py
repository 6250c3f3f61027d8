"""saturate: infinities become the largest numbers before arithmetic makes NaN of them (--enable-saturate-infinity).

What is kept between kernels is clamped on its way out of the engines to what its dtype holds, or to less where a sum
of so many would overflow; what comes from outside, and values within an expression, before an operation that knows no
infinities. Outputs of the model keep theirs.
"""

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tvm_neuron.codegen.kernels.operands import elementwise_copy, reading
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.schedule.expr import Apply, Expr, Index, Load, Num, loads, rewrite
from tvm_neuron.schedule.kernel import (
    ACCUMULATOR,
    ROOT,
    Contraction,
    Kernel,
    Operand,
    Product,
    Reduction,
    Scan,
    Statistics,
    Transposition,
)
from tvm_neuron.schedule.tensor import Tensor

_NEEDS_FINITE = ("add", "subtract", "multiply", "divide", "pow", "sin")
_BOUNDED = (
    "sigmoid", "tanh", "sin", "sign", "is_equal", "not_equal", "is_gt", "is_ge", "is_lt", "is_le", "and", "or", "not",
)  # fmt: skip
_PASSES_ON = ("max", "min", "relu", "abs", "copy", "select")
_FLOAT32_MAX = float(np.finfo(np.float32).max)


def saturate(kernels: list[Kernel], partition_of: dict[Tensor, int], dtypes: dict[Tensor, str]) -> list[Kernel]:
    """The kernels with such clamps; copies of what the PE array or a reduction reads from outside are added."""
    state = _Saturation(partition_of, dtypes, _sum_limits(kernels), _leaving(kernels))
    for kernel in kernels:
        state.add(kernel)
    return state.kernels


@dataclass
class _Saturation:
    partition_of: dict[Tensor, int]
    dtypes: dict[Tensor, str]
    sum_limits: dict[Tensor, float]
    leaving: set[Tensor]
    kernels: list[Kernel] = field(default_factory=list)
    finite: set[Tensor] = field(default_factory=set)  # kept tensors without infinities, unless they are in `unbounded`
    unbounded: set[Tensor] = field(default_factory=set)
    copies: dict[tuple[Tensor, str], Tensor] = field(default_factory=dict)

    def add(self, kernel: Kernel) -> None:
        """Appends the kernel, and before it the copies it needs."""
        self._append(kernel)
        for stale in [key for key in self.copies if key[0] is kernel.out]:  # made before this part of it was written
            del self.copies[stale]

    def _append(self, kernel: Kernel) -> None:
        root = kernel.root
        if _only_moves(kernel) and kernel.out in self.leaving:
            self.kernels.append(kernel)
            return
        if kernel.by_dma:
            for source in kernel.sources():  # none, if it is known at compile time
                if not self._is_finite(source) or self._limit(source) > self._limit(kernel.out):
                    self.unbounded.add(kernel.out)  # whatever writes the other parts of it
            self.finite.add(kernel.out)
            self.kernels.append(replace(kernel, expr=_finite_constants(kernel.expr)))
            return
        if isinstance(root, Contraction):
            data = root.data if self._is_finite(root.data) else self._copy(kernel, root.data, root.dtype)
            root = replace(root, data=data, weights=_clipped(root.weights, root.dtype))
        elif isinstance(root, Product):
            for tensor in kernel.multiplied():
                if not self._is_finite(tensor):
                    root = reading(root, tensor, self._copy(kernel, tensor, root.dtype))
        elif isinstance(root, Transposition) and not self._is_finite(root.source.tensor):
            source = self._copy(kernel, root.source.tensor, "float32")
            root = replace(root, source=Operand(source, root.source.maps))
        elif isinstance(root, Reduction):
            for load in root.loads:
                if not self._is_finite(load.tensor):
                    finite = Load(self._copy(kernel, load.tensor, "float32"), load.indices)
                    root = root.reading(lambda part, old=load, new=finite: new if part == old else part)  # type: ignore[misc]
        expr = self._finite_inside(_finite_constants(kernel.expr))
        if kernel.out not in self.leaving:
            limit = self._limit(kernel.out)
            expr = _clamp(expr, limit) if self._exceeds(expr, limit) else expr
            self.finite.add(kernel.out)
        self.kernels.append(replace(kernel, root=root, expr=expr))

    def _copy(self, reader: Kernel, tensor: Tensor, dtype: str) -> Tensor:
        if (tensor, dtype) not in self.copies:
            copy = Tensor(f"{tensor.name}.finite", tensor.shape, tensor.dtype)
            self.copies[tensor, dtype] = copy
            self.partition_of[copy], self.dtypes[copy] = self.partition_of[tensor], dtype
            self.sum_limits[copy] = self.sum_limits.get(tensor, _FLOAT32_MAX)
            self.add(elementwise_copy(reader, tensor, copy, self.partition_of[tensor]))
        return self.copies[tensor, dtype]

    def _finite_inside(self, expr: Expr) -> Expr:
        """The expression with clamps around the operands of operations that make NaN of infinities."""
        if not isinstance(expr, Apply):
            return expr
        args = tuple(map(self._finite_inside, expr.args))
        if expr.op in _NEEDS_FINITE:
            args = tuple(_clamp(arg, _FLOAT32_MAX) if self._exceeds(arg, _FLOAT32_MAX) else arg for arg in args)
        return Apply(expr.op, args)

    def _exceeds(self, expr: Expr, limit: float) -> bool:
        """Whether the value can be larger than `limit`."""
        match expr:
            case Num(value):
                return abs(value) > limit
            case Load(tensor, _) if tensor is not ACCUMULATOR and tensor.value is not None:
                return bool(np.any(np.abs(tensor.value) > limit))
            case Load(tensor, _):
                return not self._is_finite(tensor) or self._limit(tensor) > limit
            case Apply("min", (Apply("max", (_, Num(low))), Num(high))):
                return max(abs(low), abs(high)) > limit
            case Apply(op, _) if op in _BOUNDED:
                return False
            case Apply(op, args) if op in _PASSES_ON:
                return any(self._exceeds(arg, limit) for arg in args)
        return True

    def _is_finite(self, tensor: Tensor) -> bool:
        return tensor in self.finite and tensor not in self.unbounded

    def _limit(self, tensor: Tensor) -> float:
        return min(_largest(self.dtypes[tensor]), self.sum_limits.get(tensor, _FLOAT32_MAX))


def _only_moves(kernel: Kernel) -> bool:
    return kernel.by_dma or (isinstance(kernel.root, Transposition) and kernel.expr is ROOT)


def _leaving(kernels: list[Kernel]) -> set[Tensor]:
    """Outputs, and what is only moved to them: these keep their infinities."""
    found = {kernel.out for kernel in kernels if kernel.out.kind == "output"}
    readers: dict[Tensor, list[Kernel]] = {}
    for kernel in reversed(kernels):  # whoever reads a tensor comes after who writes it
        after = readers.get(kernel.out, [])
        if after and all(_only_moves(reader) and reader.out in found for reader in after):
            found.add(kernel.out)
        for tensor in kernel.sources():
            readers.setdefault(tensor, []).append(kernel)
    return found


def _sum_limits(kernels: list[Kernel]) -> dict[Tensor, float]:
    """How large what is summed may be, so that no sum of it overflows float32."""
    found: dict[Tensor, float] = {}
    for kernel in kernels:
        root, limit = kernel.root, _FLOAT32_MAX
        if isinstance(root, Contraction):
            finite = np.where(np.isfinite(root.weights), np.abs(root.weights), 0)
            limit /= 2 * float(finite.sum(axis=tuple(range(finite.ndim - 1)), dtype=np.float64).max(initial=1.0))
        elif isinstance(root, Product):
            limit = (limit / (2 * root.depth.extent * prod(axis.extent for axis in root.steps))) ** 0.5
        elif isinstance(root, Reduction) and (root.combine == "add" or _is_sum(root)):
            limit /= 2 * prod(axis.extent for axis in root.axes)
        elif isinstance(root, Statistics):
            limit = (limit / (8 * prod(axis.extent for axis in root.axes))) ** 0.5
        for tensor in (root.load.tensor,) if isinstance(root, Reduction) else kernel.multiplied():
            found[tensor] = min(found.get(tensor, _FLOAT32_MAX), limit)
    return found


def _is_sum(root: Reduction) -> bool:
    """Whether it adds up what it reads; what another scan comes to depends on its factors."""
    return isinstance(root, Scan) and root.factor == Num(1.0)


def _clamp(expr: Expr, limit: float) -> Expr:
    return Apply("min", (Apply("max", (expr, Num(-limit))), Num(limit)))


def _largest(dtype: str) -> float:
    """The largest number of a dtype; what is no floating point holds no infinities."""
    found = DTYPES[dtype]
    return float(ml_dtypes.finfo(found).max) if dtype in ("bfloat16", "float16", "float32") else _FLOAT32_MAX


def _clipped(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    return np.clip(values, -_largest(dtype), _largest(dtype)) if np.isinf(values).any() else values


def _finite_constants(expr: Expr) -> Expr:
    known: dict[Tensor, Tensor] = {}
    for load in loads(expr):
        value = load.tensor.value
        if value is not None and value.dtype.kind == "f" and np.isinf(value).any():
            known[load.tensor] = replace(load.tensor, value=_clipped(value, "float32"))

    def leaf(part: Num | Index | Load) -> Expr:
        if isinstance(part, Num):
            return Num(min(max(part.value, -_FLOAT32_MAX), _FLOAT32_MAX))
        return Load(known[part.tensor], part.indices) if isinstance(part, Load) and part.tensor in known else part

    return rewrite(expr, leaf)
