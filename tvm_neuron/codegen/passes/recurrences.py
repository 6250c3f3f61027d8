"""recurrences: steps that a model has written out one by one, h = a * h + b, as one recurrence over all of them.

An exported network has a block for each step of a state that decays, or of a filter; they depend on each other, so that
each waits for the one before and takes instructions of its own. Where the factors and terms of all steps lie in one
tensor each, along one dimension, the steps are one scan along it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tvm_neuron.codegen.passes.moves import inverse, plain_axes
from tvm_neuron.codegen.passes.roll import in_order, in_step, rolled
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, TensorTensor, TensorTensorScan, Tile
from tvm_neuron.schedule.expr import SCAN, Apply, Axis, Expr, Index, Load, replace_axes
from tvm_neuron.schedule.graph import Block, Graph, linear_indices
from tvm_neuron.schedule.tensor import Tensor
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.sim.clock import clock_hz, duration_ps


@dataclass(frozen=True, eq=False)
class _Step:
    """What `add` writes, of the places of its axes: factor * previous + term."""

    multiply: Block
    add: Block
    factor: Expr
    previous: Load
    term: Expr


def recurrences(graph: Graph, device: Device) -> int:
    """Makes a scan of each chain of steps that takes engines longer than the scan.

    Gives the picoseconds for which steps keep engines besides what their elements take, which no price of layouts has.
    """
    steps = {step.add.output: step for block in graph.blocks for step in _steps(graph, block)}
    return sum(_take(graph, chain, device) for chain in list(_chains(steps)))


def _steps(graph: Graph, add: Block) -> Iterator[_Step]:
    """The ways, none or one, in which a block is a step from what another one writes."""
    tensor = add.output
    if tensor.kind != "temp" or len(graph.writers(tensor)) > 1 or "float" not in tensor.dtype:
        return
    match add.expr:
        case Apply("add", (Load() as left, Load() as right)) if not add.combine and _is_whole(add.index, tensor):
            for product, term in ((left, right), (right, left)):
                yield from _step_from(graph, add, product, term)


def _step_from(graph: Graph, add: Block, product: Load, term: Load) -> Iterator[_Step]:
    writers, tensor = graph.writers(product.tensor), product.tensor
    if len(writers) != 1 or graph.readers(tensor) != [add] or tensor.kind != "temp" or product == term:
        return
    if not _is_same_place(product, add) or not _is_whole(writers[0].index, tensor) or writers[0].combine:
        return
    match writers[0].expr:
        case Apply("multiply", (left, right)):
            here = inverse(writers[0], product.indices)
            for factor, previous in ((left, right), (right, left)):
                state = replace_axes(previous, here)
                if isinstance(state, Load) and _is_same_place(state, add) and _is_state(graph, state.tensor, add):
                    yield _Step(writers[0], add, replace_axes(factor, here), state, term)
                    return


def _is_state(graph: Graph, tensor: Tensor, add: Block) -> bool:
    """Whether a block could go on from it: what one other block makes, or an input."""
    return tensor.value is None and len(graph.writers(tensor)) <= 1 and tensor.dtype == add.output.dtype


def _is_whole(index: Sequence[Expr], tensor: Tensor) -> bool:
    """Whether a block that writes there goes over all of a tensor, an axis for each dimension."""
    axes = plain_axes(tuple(index))
    return axes is not None and all(
        extent == 1 if axis is None else axis.extent == extent for axis, extent in zip(axes, tensor.shape, strict=True)
    )


def _is_same_place(load: Load, block: Block) -> bool:
    """Whether it is the element of the place that the block writes, in a tensor of the same shape."""
    return load.tensor.shape == block.output.shape and linear_indices(load.indices) == linear_indices(block.index)


def _chains(steps: dict[Tensor, _Step]) -> Iterator[list[_Step]]:
    """Steps each of which goes on from the one before, as many as there are."""
    after: dict[Tensor, list[_Step]] = {}
    for step in steps.values():
        after.setdefault(step.previous.tensor, []).append(step)
    for step in steps.values():
        if step.previous.tensor in steps and len(after[step.previous.tensor]) == 1:
            continue
        chain = [step]
        while len(next_steps := after.get(chain[-1].add.output, [])) == 1:
            chain += next_steps
        yield chain


def _take(graph: Graph, chain: Sequence[_Step], device: Device) -> int:
    """Replaces a chain by a scan, if there is one and it pays; what its steps take besides their elements, else 0."""
    first, states = chain[0].add, chain[0].add.output
    along, counted = Axis("step", len(chain)), Axis("step", len(chain), is_reduction=True)
    factor = in_step([_of_first(step.factor, step, chain[0]) for step in chain], counted)
    term = in_step([_of_first(step.term, step, chain[0]) for step in chain], counted)
    if factor is None or not isinstance(term, Load) or term.tensor.value is not None:
        return 0
    besides = _besides_ps(chain, term, device)
    dim = next((d for d, part in enumerate(linear_indices(term.indices) or ()) if counted in part.terms), None)
    order = {block: place for place, block in enumerate(graph.blocks)}
    read = [part.tensor for part in (factor, term, chain[0].previous) if isinstance(part, Load)]
    is_there = all(order[writer] < order[first] for tensor in read for writer in graph.writers(tensor))
    is_known = isinstance(factor, Load) and factor.tensor.value is not None
    if dim is None or not is_there or is_known or not besides:
        return 0
    dim = min(dim, len(states.shape))
    shape = (*states.shape[:dim], along.extent, *states.shape[dim:])
    every = Tensor(f"{states.name}.states", shape, states.dtype)
    index = (*first.index[:dim], Index(along), *first.index[dim:])
    expr = Apply(SCAN, (factor, term, chain[0].previous, Index(along), Index(counted)))
    axes = (*in_order((*first.axes, along), index), counted)
    graph.replace(first, replace(first, axes=axes, output=every, index=index, expr=expr, combine="add"))
    for step in chain[1:]:
        graph.replace(step.add)
    for step in chain:
        graph.replace(step.multiply)
    rolled(graph, [step.add.output for step in chain], every, dim)
    return besides


def _of_first(expr: Expr, step: _Step, first: _Step) -> Expr:
    """An expression of a step's places, of those of the first one."""
    axes = zip(plain_axes(step.add.index) or (), plain_axes(first.add.index) or (), strict=True)
    return replace_axes(expr, {mine: Index(its) for mine, its in axes if mine is not None and its is not None})


def _besides_ps(chain: Sequence[_Step], term: Load, device: Device) -> int:
    """What two instructions for all of the state in each step take besides its elements.

    0 where scans for each element of the state would take longer than those.
    """
    shape, steps = chain[0].add.output.shape, len(chain)
    longest = max(shape)
    elems = chain[0].add.output.elems // longest * -(-longest // PARTITIONS)
    apart = device.strided_penalty_bytes if (linear_indices(term.indices) or ())[-1].terms else 1
    state, row = (Tile("sbuf", "float32", Affine(), 1, Affine(), dims) for dims in (((1, elems),), ((apart, steps),)))
    one = TensorTensor(state, state, state, "multiply").cost(device).busy_cycles + device.instruction_latency_cycles
    scan = TensorTensorScan(row, row, row, 0.0, "multiply", "add", 0).cost(device).busy_cycles
    besides = 2 * steps * (one - min(one, 2 * elems))
    return duration_ps(besides, clock_hz(device, "pool")) if elems * scan < 2 * steps * one else 0
