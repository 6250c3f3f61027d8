"""Convolution: one with constant weights, to be scaled, added to one of the same tensor, or put beside others."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

from tvm_neuron.frontend.decompose.shapes import static_shape

_LAYOUTS = {f"relax.nn.conv{len(dims)}d": (f"NC{dims}", f"OI{dims}") for dims in ("W", "HW", "DHW")}


@dataclass(frozen=True)
class Convolution:
    """`call` with other `data`, `groups`, `weights` [outputs, inputs of a group, *kernel], padding and dilation.

    The results have the same extents. Of each dimension, the kernel's first place reads `before` elements earlier, and
    there are `after` more at the end.
    """

    call: relax.Call
    data: relax.Expr
    groups: int
    weights: NDArray[np.float64]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilation: tuple[int, ...]

    @staticmethod
    def of(value: relax.Expr | None) -> "Convolution | None":
        """None for what is no convolution of float32 with constant weights, static shapes and the usual layouts."""
        if not is_convolution(value):
            return None
        (data, weights), attrs = value.args, value.attrs
        layouts = str(attrs.data_layout), str(attrs.kernel_layout), str(attrs.out_layout)
        if layouts != (*_LAYOUTS[value.op.name], layouts[0]) or not isinstance(weights, tvm.ir.GenericConst):
            return None
        if static_shape(data) is None or any(str(each.ty.dtype) != "float32" for each in (data, weights, value)):
            return None
        array = weights.value.numpy().astype(np.float64)
        pads, rank = [int(pad) for pad in attrs.padding], array.ndim - 2
        dilation = tuple(int(step) for step in attrs.dilation)
        return Convolution(value, data, int(attrs.groups), array, (*pads[:rank],), (*pads[rank:],), dilation)

    @staticmethod
    def side_by_side(parts: "Sequence[Convolution]", data: relax.Expr) -> "Convolution | None":
        """One whose results are those of all, of channels of `data` that lie one behind the other; None if none is."""
        first = parts[0]
        alike = {(p.weights.shape[1], len(p.weights) // p.groups, tuple(p.call.attrs.strides)) for p in parts}
        if len(alike) > 1 or len({p.weights.ndim for p in parts}) > 1 or len({p.extents for p in parts}) > 1:
            return None
        before = tuple(map(max, *(p.before for p in parts)))
        dilation = tuple(map(max, *(p.dilation for p in parts)))
        found = [weights for p in parts if (weights := p._weights_for(before, dilation)) is not None]
        if len(found) < len(parts):
            return None
        kernel = tuple(map(max, *(weights.shape[2:] for weights in found)))
        weights = np.zeros((sum(map(len, found)), found[0].shape[1], *kernel))
        start = 0
        for part in found:
            weights[start : start + len(part), :, *map(slice, part.shape[2:])] = part
            start += len(part)
        whole = replace(first, data=data, groups=sum(p.groups for p in parts))
        return whole._with(weights, before, dilation)

    @property
    def extents(self) -> tuple[int, ...]:
        """Of each result, but for its channels."""
        batch, _, *others = static_shape(self.call) or (0, 0)
        return batch, *others

    def scaled(self, by: NDArray[np.float64]) -> "Convolution":
        """Its results times one number each of [1] or [outputs]."""
        return replace(self, weights=self.weights * by.reshape(-1, *[1] * (self.weights.ndim - 1)))

    def point(self, by: NDArray[np.float64]) -> "Convolution | None":
        """One of the same tensor that multiplies each of its channels by a number; None where results aren't its.

        Nor where it is a plain residual of a dense one: that is added on the way out of PSUM, without rounding.
        """
        is_residual = self.groups == 1 and bool((by == 1).all())
        if is_residual or static_shape(self.data) != static_shape(self.call):
            return None
        outputs, inputs, *kernel = self.weights.shape
        weights = np.zeros((outputs, inputs))
        weights[np.arange(outputs), np.arange(outputs) % inputs] = by
        here, single = (0,) * len(kernel), (1,) * len(kernel)
        weights = weights.reshape(outputs, inputs, *single)
        return replace(self, weights=weights, before=here, after=here, dilation=single)

    def plus(self, other: "Convolution") -> "Convolution | None":
        """One that makes the sum of both; None where none does, or only with more multiplications."""
        mine, theirs = self.call, other.call
        is_same = self.data.same_as(other.data) and static_shape(mine) == static_shape(theirs)
        is_same &= list(mine.attrs.strides) == list(theirs.attrs.strides) and self.groups == other.groups
        if not is_same or self.weights.shape[:2] != other.weights.shape[:2]:
            return None
        before, dilation = tuple(map(max, self.before, other.before)), tuple(map(max, self.dilation, other.dilation))
        one, two = self._weights_for(before, dilation), other._weights_for(before, dilation)
        if one is None or two is None:
            return None
        kernel = tuple(map(max, one.shape[2:], two.shape[2:]))
        if math.prod(kernel) > math.prod(self.weights.shape[2:]) + math.prod(other.weights.shape[2:]):
            return None
        total = np.zeros((*one.shape[:2], *kernel))
        for part in (one, two):
            total[tuple(map(slice, part.shape))] += part
        return self._with(total, before, dilation)

    def expr(self) -> relax.Call:
        """The call."""
        make: Callable[..., relax.Call] = getattr(relax.op.nn, self.call.op.name.rpartition(".")[2])
        strides = [int(step) for step in self.call.attrs.strides]
        weights = relax.const(self.weights.astype(np.float32))
        return make(self.data, weights, strides, [*self.before, *self.after], list(self.dilation), self.groups)

    def _weights_for(self, before: tuple[int, ...], dilation: tuple[int, ...]) -> NDArray[np.float64] | None:
        """Its weights in a kernel that begins earlier, and of another dilation where it has a single place."""
        kernel = self.weights.shape[2:]
        moved = [divmod(new - old, step) for new, old, step in zip(before, self.before, dilation, strict=True)]
        changed = zip(kernel, self.dilation, dilation, strict=True)
        if any(rest for _, rest in moved) or any(size > 1 and old != new for size, old, new in changed):
            return None
        return np.pad(self.weights, [(0, 0), (0, 0), *((places, 0) for places, _ in moved)])

    def _with(
        self, weights: NDArray[np.float64], before: tuple[int, ...], dilation: tuple[int, ...]
    ) -> "Convolution | None":
        extents, results = (static_shape(self.data) or ())[2:], self.extents[1:]
        after = []
        for at, stride in enumerate(int(step) for step in self.call.attrs.strides):
            reach = (results[at] - 1) * stride + dilation[at] * (weights.shape[2 + at] - 1) + 1
            missing = reach - before[at] - extents[at]
            if missing <= -stride:
                return None  # there would be a result more
            after.append(max(missing, 0))  # less than none: the last elements are not read
        return replace(self, weights=weights, before=before, after=tuple(after), dilation=dilation)


def is_convolution(value: relax.Expr | None) -> TypeGuard[relax.Call]:
    """Whether it calls one, of any dtype and layout."""
    return isinstance(value, relax.Call) and getattr(value.op, "name", "") in _LAYOUTS
