"""join_convolutions: convolutions of one tensor whose results are added become one, by the sum of their weights.

Networks that are trained with several branches in each layer (RepVGG, MobileOne, FastViT) often come as they were
trained. A branch with a smaller kernel has its weights amid zeros; a batch norm of the tensor, or of depthwise ones the
tensor itself, has a single weight for each channel.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from tvm_neuron.frontend.convolution import Convolution, is_convolution
from tvm_neuron.frontend.decompose.emitter import Emitter
from tvm_neuron.frontend.decompose.shapes import static_shape
from tvm_neuron.frontend.known import Made, constant_of, is_of_channels, uses_of
from tvm_neuron.frontend.origin import origin_of, with_blocks

_ONE = np.ones(1)


def join_convolutions(func: relax.Function) -> relax.Function:
    """Replace such sums."""
    uses = uses_of(func)
    blocks = []
    for block in func.body.blocks:
        made = {binding.var: binding.value for binding in block.bindings if isinstance(binding, relax.VarBinding)}
        sums = _Sums(made, uses)
        bindings: list[relax.Binding] = []
        for binding in block.bindings:
            bindings += sums.joined(binding) or [binding]
        blocks.append(type(block)(bindings))
    return with_blocks(func, blocks)


@dataclass(frozen=True)
class _Term:
    """Part of a sum: `value` times a number, or one for each channel."""

    value: relax.Expr
    scale: NDArray[np.float64]


class _Sums:
    """The sums among the bindings of a block."""

    def __init__(self, made: Made, uses: Counter[relax.Var]) -> None:
        self.made, self.uses = made, uses
        calls = [value for value in made.values() if isinstance(value, relax.Call)]
        self.inner = {term.value for call in calls for term in self._parts(call) if self._goes_on(term.value, call)}

    def joined(self, binding: relax.Binding) -> list[relax.Binding] | None:
        """What a sum becomes; None for what is no whole sum, or one of which no two convolutions are one."""
        call = self.made.get(binding.var)
        if not isinstance(call, relax.Call) or binding.var in self.inner:
            return None
        terms = list(self._terms(call, _ONE))
        if len({self._read_by(term.value) for term in terms}) == len(terms):
            return None  # as most: a convolution and its bias
        convolutions = [self._convolution(term, call) for term in terms]
        found: list[Convolution] = []
        for each in filter(None, convolutions):
            _add(found, each)
        beside = [term for term, each in zip(terms, convolutions, strict=True) if each is None]
        rest = [term for term in beside if not _add_point(found, term)]
        if len(found) + len(rest) == len(terms):
            return None
        emitter = Emitter(binding, self.made)
        parts = self._parts_of(found, rest, emitter)
        total = reduce(lambda left, right: emitter.emit(relax.op.add(left, right)), parts)
        return [*emitter.bindings, relax.VarBinding(binding.var, total)]

    def _parts_of(self, found: list[Convolution], rest: list[_Term], emitter: Emitter) -> list[relax.Expr]:
        """What is to be added up; what is constant is one bias."""
        rank = len(emitter.replaced.value.ty.shape)
        parts: list[relax.Expr] = [emitter.emit(each.expr(), origin_of(each.call)) for each in found]
        biases: list[NDArray[np.float64]] = []
        for term in rest:
            constant, scale = constant_of(term.value, self.made), term.scale.reshape(-1, *[1] * (rank - 2))
            if constant is not None:
                biases.append(constant * scale)
            elif (scale == 1).all():
                parts.append(term.value)
            else:
                factor = relax.const(scale.astype(np.float32))
                parts.append(emitter.emit(relax.op.multiply(term.value, factor)))
        if biases:
            parts.insert(1, relax.const(reduce(np.add, biases).astype(np.float32)))
        return parts

    def _read_by(self, term: relax.Expr) -> relax.Expr:
        """Of a convolution what it reads, else the term itself."""
        value = self.made.get(term)
        return value.args[0] if is_convolution(value) else term

    def _convolution(self, term: _Term, call: relax.Call) -> Convolution | None:
        """What makes a term, if nothing else reads it."""
        found = Convolution.of(self.made.get(term.value)) if self.uses[term.value] == 1 else None
        return None if found is None or static_shape(found.call) != static_shape(call) else found.scaled(term.scale)

    def _terms(self, call: relax.Call, scale: NDArray[np.float64]) -> Iterator[_Term]:
        for term in self._parts(call):
            if self._goes_on(term.value, call):
                yield from self._terms(self.made[term.value], scale * term.scale)
            else:
                yield _Term(term.value, scale * term.scale)

    def _goes_on(self, part: relax.Expr, call: relax.Call) -> bool:
        """Whether an operand of a sum is a sum that only it reads."""
        value = self.made.get(part)
        if not isinstance(value, relax.Call) or self.uses[part] != 1 or static_shape(value) != static_shape(call):
            return False
        return bool(self._parts(value))

    def _parts(self, call: relax.Call) -> list[_Term]:
        """The operands of a sum, a difference, or a product with a number for each channel; else none."""
        name, shape = getattr(call.op, "name", ""), static_shape(call)
        if shape is None or len(shape) < 3 or str(call.ty.dtype) != "float32":
            return []
        if name in ("relax.add", "relax.subtract"):
            left, right = call.args
            return [_Term(left, _ONE), _Term(right, _ONE if name == "relax.add" else -_ONE)]
        for value, by in (call.args, call.args[::-1]) if name == "relax.multiply" else ():
            scale = constant_of(by, self.made) if is_of_channels(static_shape(by), shape) else None
            if scale is not None and static_shape(value) == shape:
                return [_Term(value, scale.reshape(-1))]
        return []


def _add(found: list[Convolution], convolution: Convolution) -> None:
    for at, other in enumerate(found):
        if (both := other.plus(convolution)) is not None:
            found[at] = both
            return
    found.append(convolution)


def _add_point(found: list[Convolution], term: _Term) -> bool:
    """Whether a term is what one of the convolutions reads, and part of it by now."""
    for at, other in enumerate(found):
        point = other.point(term.scale) if other.data.same_as(term.value) else None
        if point is not None and (both := other.plus(point)) is not None:
            found[at] = both
            return True
    return False
