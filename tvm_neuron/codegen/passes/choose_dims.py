"""choose_dims: which dimension of each tensor lies on the partitions, by the price of all that follows from it.

`assign_partitions` goes from block to block and lets each keep what its largest operand has. Of a tensor [heads,
tokens, size] it may so put four heads on 128 partitions, or read an input element by element. From there on, a tensor,
or it and those that lie as it does, takes another dimension where the blocks around it then take less time.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from math import inf

from tvm_neuron.codegen.kernels.simplified import simplified
from tvm_neuron.codegen.passes.alike import form_of
from tvm_neuron.codegen.passes.layout import lay_out_block
from tvm_neuron.codegen.passes.merge import merged
from tvm_neuron.codegen.passes.move_cost import crossing_of, end_ps, kernel_ps, staged_ps
from tvm_neuron.codegen.passes.moves import covered_axes, moved_load
from tvm_neuron.errors import UnschedulableError
from tvm_neuron.hw import Device
from tvm_neuron.schedule.expr import Axis
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.roles import gathered, is_constant_contraction, product_factors
from tvm_neuron.schedule.rule import Context, Rule, apply_rules
from tvm_neuron.schedule.tensor import Tensor

Dims = Mapping[Tensor, int]
Copy = tuple[Tensor, int]

_ROUNDS = 3
_MOST_PRICED = 6000  # blocks in a layout; what is looked at first takes the most time


def choose_dims(graph: Graph, start: Dims, given: Set[Tensor], rules: Sequence[Rule], device: Device) -> Dims:
    """A layout of the graph's own tensors that takes no longer than `start`; that of some tensors is `given`."""
    graph, into = merged(graph)
    search = _Search(graph, start, given, rules, device)
    for _ in range(_ROUNDS):
        if not search.improve():
            break
    found = dict(search.dims)
    for tensor, whole in reversed(into.items()):
        found[tensor] = found[whole]
    return {tensor: found[tensor] for tensor in start}


class _Search:
    def __init__(self, graph: Graph, start: Dims, given: Set[Tensor], rules: Sequence[Rule], device: Device) -> None:
        self.graph, self.rules, self.device = graph, rules, device
        self.dims = {tensor: start[tensor] for tensor in graph.tensors()}
        # What sums channels or gathers says how its result lies, and positions lie as what is found there.
        own = {block.output for block in graph.blocks if gathered(block) or is_constant_contraction(block)}
        own |= {tensor for tensor in graph.outputs if len(graph.writers(tensor)) > 1}  # each piece by its own way
        own |= {block.output for block in graph.blocks if block.output.is_spread}
        self.given = {*given, *own, *(found.positions.tensor for found in map(gathered, graph.blocks) if found)}
        self.place = {block: place for place, block in enumerate(graph.blocks)}
        self.around: dict[Tensor, list[Block]] = {}
        for block in graph.blocks:
            for tensor in dict.fromkeys([block.output, *block.sources()]):
                self.around.setdefault(tensor, []).append(block)
        self.prices: dict[Hashable, tuple[list[tuple[Tensor | int, int, float]], float]] = {}
        self.places = {block: _places(block) for block in graph.blocks}
        joined = {tensor: self._is_joined(tensor) for tensor in graph.tensors()}
        numbers: dict[Hashable, int] = {}  # of forms, which are long to compare
        self.forms: dict[Block, tuple[int, list[Tensor]]] = {}
        for block in graph.blocks:
            form, tensors = form_of(block)
            is_last = block is graph.writers(block.output)[-1]
            whole = (form, is_last, *(joined[tensor] for tensor in tensors))
            self.forms[block] = numbers.setdefault(whole, len(numbers)), tensors

    def improve(self) -> bool:
        """Changes what can be changed for the better; whether there was anything."""
        found = False
        tensors = [tensor for tensor in self.dims if tensor not in self.given and tensor in self.around]
        for tensor in sorted(tensors, key=lambda t: -self.price(self.around[t], self.dims)):
            if len(self.prices) > _MOST_PRICED:
                return False
            found |= self._improve(tensor)
        return found

    def _improve(self, tensor: Tensor) -> bool:
        best, least = None, 0.0
        for dim in distinct_dims(tensor.shape):
            if dim == self.dims[tensor]:
                continue
            for changes in self._changes(tensor, dim):
                around = self._around(changes)
                gain = self.price(around, self.dims) - self.price(around, {**self.dims, **changes})
                if gain > least:
                    best, least = changes, gain
        self.dims |= best or {}
        return best is not None

    def _changes(self, tensor: Tensor, dim: int) -> Iterator[dict[Tensor, int]]:
        """The tensor alone, with all that is made of it and lies as it does, and with what it is made of, too."""
        seen: list[dict[Tensor, int]] = []
        for directions in ((), ("out",), ("out", "in")):
            changes = self._together(tensor, dim, directions)
            if changes not in seen:
                seen.append(changes)
                yield changes

    def _together(self, tensor: Tensor, dim: int, directions: Sequence[str]) -> dict[Tensor, int]:
        changes, pending = {tensor: dim}, [tensor] if directions else []
        while pending:
            changed = pending.pop()
            for block in self.around[changed]:
                if "in" not in directions and block.output is changed:
                    continue
                for other, its in self._follow(block, changed, changes[changed]):
                    if other not in changes and other not in self.given:
                        changes[other] = its
                        pending.append(other)
        return changes

    def _follow(self, block: Block, tensor: Tensor, dim: int) -> Iterator[tuple[Tensor, int]]:
        """The other tensors of a block that lie as one does, and the dimension with which they still would."""
        places = self.places[block]
        axes = next((maps for found, maps in places if found is tensor), ())
        if not axes:
            return
        old, new = axes[self.dims[tensor]], axes[dim]
        for other, maps in places:
            if other is not tensor and maps and maps[self.dims[other]] == old:
                yield from ((other, d) for d, m in enumerate(maps) if m == new and new)

    def _around(self, changes: Iterable[Tensor]) -> list[Block]:
        found = dict.fromkeys(block for tensor in changes for block in self.around[tensor])
        return sorted(found, key=self.place.__getitem__)

    def price(self, blocks: Iterable[Block], dims: Dims) -> float:
        """Picoseconds of blocks, with the copies that they read, which they share; infinite if no rule takes one."""
        copies: dict[Copy, float] = {}
        total = 0.0
        for block in blocks:
            shared, own = self._priced(block, dims)
            copies |= shared
            total += own
        return total + sum(copies.values())

    def _priced(self, block: Block, dims: Dims) -> tuple[dict[Copy, float], float]:
        """The price of a block, which those share that are alike and lie alike: of its copies, and of all else."""
        form, tensors = self.forms[block]
        key = form, *(dims[tensor] for tensor in tensors)
        if key not in self.prices:
            shared, own = self._compute(block, dims)
            place = {tensor: number for number, tensor in enumerate(tensors)}
            self.prices[key] = [(place.get(tensor, tensor), d, ps) for (tensor, d), ps in shared.items()], own
        copies, own = self.prices[key]
        return {(tensors[at] if isinstance(at, int) else at, d): ps for at, d, ps in copies}, own

    def _compute(self, block: Block, dims: Dims) -> tuple[dict[Copy, float], float]:
        here = {tensor: dims[tensor] for tensor, _ in self.places[block]}
        blocks, laid_out, copies = lay_out_block(self.graph, block, here)
        context = Context(self.device, laid_out)
        shared: dict[Copy, float] = {}
        own, from_root = 0.0, {tensor for tensor in here if self._is_joined(tensor)}
        for made in blocks:
            if is_constant_contraction(made):  # takes the same however its data lay before, but for an input's way
                own += sum(staged_ps(t, laid_out, self.device) for t in made.sources() if t.kind == "input")
                continue
            try:
                kernel = simplified(apply_rules(made, self.rules, context))
            except UnschedulableError:
                return {}, inf
            price: float = 0 if self._is_free(made, kernel) else kernel_ps(kernel, laid_out, self.device)
            for tensor in crossing_of(kernel) if price else ():  # what one transfer brings for all that read it
                shared[tensor, laid_out[tensor]] = staged_ps(tensor, laid_out, self.device)
                price -= shared[tensor, laid_out[tensor]]
            if not kernel.root and not kernel.by_dma and from_root.intersection(kernel.matched):
                price -= end_ps(kernel, self.device)
            elif kernel.root:
                from_root.add(made.output)
            if made.output in copies:
                shared[copies[made.output]] = price
            else:
                own += price
        return shared, own

    def _is_joined(self, tensor: Tensor) -> bool:
        """Whether what reads a tensor can become part of what makes it: the PE array does, for one reader."""
        writers = self.graph.writers(tensor)
        is_alone = len(writers) == 1 and len(self.graph.readers(tensor)) == 1 and tensor.kind == "temp"
        return is_alone and bool(is_constant_contraction(writers[0]) or product_factors(writers[0]))

    def _is_free(self, block: Block, kernel: Kernel) -> bool:
        """Whether it is a move within partitions that is left to what makes its source."""
        load = moved_load(block)
        is_move = load is not None and not kernel.by_dma and not kernel.root
        return is_move and load is not None and load.tensor.kind == "temp" and covered_axes(load, block) is not None


def distinct_dims(shape: Sequence[int]) -> list[int]:
    """The dimensions that may lie on the partitions: all of several elements, and of those of one the first."""
    return [dim for dim, extent in enumerate(shape) if extent > 1 or dim == list(shape).index(1)]


def _places(block: Block) -> list[tuple[Tensor, tuple[frozenset[Axis], ...]]]:
    """The tensors of a block whose layouts matter to it, and the axes along each of their dimensions."""
    found = [(block.output, block.index), *((load.tensor, load.indices) for load in block.loads())]
    is_mixed = is_constant_contraction(block) or product_factors(block) is not None or gathered(block) is not None
    places = []
    for tensor, indices in found:
        if tensor.value is None:
            maps = () if is_mixed else linear_indices(indices) or ()
            places.append((tensor, tuple(frozenset(part.terms) for part in maps)))
    return places
