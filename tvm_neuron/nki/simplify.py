"""simplify: what is an expression of one tile only becomes the one instruction of Scalar that computes it.

Beta 1's compiler does it: of adamw's six instructions on two tiles (NKIBench), those of `(c * g) * g` and `x - c * x`
have both operands from one tile, and the published times for which Vector was busy are those of the other four and a
reciprocal, to 0.3 %. Of the two only the square is made here: `(1 - c) * x` of an infinite x is no NaN.
"""

from math import sqrt

from tvm_neuron.isa import Activation, ActTensorScalar, TensorTensor, Tile
from tvm_neuron.nki.emission import Place, Record
from tvm_neuron.nki.trace import Trace


def simplified(trace: Trace) -> list[Record]:
    """A trace's records where the dialect's compiler simplifies them; as they are where the kernel places its tiles."""
    records = trace.records
    if not trace.dialect.simplifies or trace.is_placed:
        return records
    uses: dict[Place, list[int]] = {}
    writes: dict[Place, list[int]] = {}
    for step, record in enumerate(records):
        for place in dict.fromkeys(record.places.values()):
            uses.setdefault(place, []).append(step)
        for name, _ in record.instruction.destinations:
            if name in record.places:
                writes.setdefault(record.places[name], []).append(step)
    found: list[Record | None] = list(records)
    for step, record in enumerate(records):
        for factor, source in (("left", "right"), ("right", "left")):
            scaled = _used_once(uses, record.places.get(factor), step)
            square = _square(records[scaled], record, factor, source) if scaled is not None else None
            if scaled is None or square is None:
                continue
            if any(scaled < at < step for at in writes.get(record.places[source], ())):
                continue  # what was scaled is not what it is multiplied by
            found[scaled], found[step] = None, square
            break
    return [record for record in found if record is not None]


def _used_once(uses: dict[Place, list[int]], place: Place | None, step: int) -> int | None:
    """The step that writes what is read at `step` and nowhere else."""
    steps = uses.get(place, []) if place is not None else []
    return steps[0] if len(steps) == 2 and steps[1] == step else None


def _square(scaling: Record, product: Record, factor: str, source: str) -> Record | None:
    """Instead of a tile times a number, and that times the tile, in float32: the square of its root's multiple."""
    first, second = scaling.instruction, product.instruction
    if not isinstance(first, ActTensorScalar) or not isinstance(second, TensorTensor) or second.op != "multiply":
        return None
    if (first.op0, first.op1) != ("multiply", "bypass") or isinstance(first.scalar0, Tile) or not first.scalar0 > 0:
        return None
    is_same = scaling.places["source"] == product.places[source] and first.source == getattr(second, source)
    if not is_same or first.result != getattr(second, factor) or product.places[source] == product.places[factor]:
        return None
    if {first.source.dtype, first.result.dtype, second.result.dtype} != {"float32"}:
        return None  # a factor is rounded to what it is kept as
    made = Activation(second.result, first.source, sqrt(first.scalar0), 0.0, "square")
    return Record(made, {"result": product.places["result"], "source": scaling.places["source"]}, product.at)
