"""Islands: subgraphs that CPU operators feed or read, whose tensors are carried to the device and back for them."""

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from math import prod

from tvm import relax

from tvm_neuron.frontend.origin import bindings_of
from tvm_neuron.partition.plan import Plan, Where
from tvm_neuron.partition.substitute import used_vars


@dataclass(frozen=True)
class Island:
    """A subgraph's surroundings. `carried_bytes` is what its inputs and outputs take, known at run time only."""

    operators: int
    carried_bytes: int
    is_fed_by_cpu: bool
    is_read_by_cpu: bool

    @property
    def is_enclosed(self) -> bool:
        """Whether it lies between CPU operators."""
        return self.is_fed_by_cpu and self.is_read_by_cpu


Weigh = Callable[[relax.Function, Island], str]
"""Why a flat subgraph is better left to the CPU; empty if it is worth what carrying its tensors costs."""


class Surroundings:
    """Who makes and who reads each value of a function that a plan is made for."""

    def __init__(self, func: relax.Function, plan: Plan) -> None:
        self.plan = plan
        self.makers: dict[relax.Var, set[relax.Var]] = {}
        self.read_by: dict[relax.Var, set[relax.Var]] = {}
        self.operands: dict[relax.Var, list[relax.Var]] = {}
        for binding in bindings_of(func):
            value, used = binding.value, used_vars(binding.value)
            if isinstance(value, relax.Call | relax.If):
                self.makers[binding.var] = {binding.var}
                self.operands[binding.var] = used
                for var in used:
                    for maker in self._makers(var):
                        self.read_by.setdefault(maker, set()).add(binding.var)
            else:
                self.makers[binding.var] = {maker for var in used for maker in self._makers(var)}
        self.returned = {maker for var in used_vars(func.body.body) for maker in self._makers(var)}

    def island(self, members: Set[relax.Var]) -> Island:
        """The surroundings of the subgraph of the calls bound to `members`."""
        entering = {
            var: self._makers(var)
            for member in members
            for var in self.operands[member]
            if not self.plan.is_constant(var) and not self._makers(var) & members
        }
        leaving = [m for m in members if m in self.returned or self.read_by.get(m, set()) - members]
        readers = {reader for member in leaving for reader in self.read_by.get(member, set()) - members}
        return Island(
            operators=len({self.plan.decisions[member].origin for member in members}),
            carried_bytes=sum(map(_size_bytes, (*entering, *leaving))),
            is_fed_by_cpu=any(self._is_on_cpu(maker) for makers in entering.values() for maker in makers),
            is_read_by_cpu=any(map(self._is_on_cpu, readers)),
        )

    def _makers(self, var: relax.Var) -> set[relax.Var]:
        """The calls whose results `var` holds; none for a parameter."""
        return self.makers.get(var, set())

    def _is_on_cpu(self, var: relax.Var) -> bool:
        return var in self.plan.decisions and self.plan.decisions[var].where is Where.CPU


def _size_bytes(var: relax.Var) -> int:
    return sum(prod(map(int, ty.shape)) * ty.dtype.dtype.itemsize for ty in _tensor_types(var.ty))


def _tensor_types(ty: relax.Type) -> Iterator[relax.TensorType]:
    if isinstance(ty, relax.TupleType):
        for field in ty.fields:
            yield from _tensor_types(field)
    elif isinstance(ty, relax.TensorType):
        yield ty
