"""engine_halves: short elementwise kernels, half of the tiles on ACT and half on POOL at the same time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from tvm_neuron.codegen.emit.targets import Emits
from tvm_neuron.isa import Activation, ActTensorScalar, Instruction, TensorScalar
from tvm_neuron.schedule.expr import Apply, Load, axes_of
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tiling import PARTITIONS, Segment

_MOST_ELEMS = 1024  # of each partition: what is longer runs beside other work, for which both engines are needed
Cuts = Sequence[Sequence[Segment]]


def engine_halves(builder: Emits, kernel: Kernel, cuts: Cuts) -> Iterable[tuple[Cuts, Emits]]:
    """The segments of the channels and of each free axis with where their instructions go.

    One part, if the kernel does more than multiply or divide by one value for each partition, or has only one tile.
    """
    axis = next((number for number, segments in enumerate(cuts) if sum(count for *_, count in segments) > 1), None)
    elems = prod(sum(size * count for _, size, count in segments) for segments in cuts[1:]) * cuts[0][0][2]
    if axis is None or len(cuts[axis]) > 1 or elems > _MOST_ELEMS or not _is_scaled(kernel):
        return [(cuts, builder)]
    ((start, size, count),) = cuts[axis]
    first = -(-count // 2)
    later = start + first * (size if axis else PARTITIONS)
    halves = ((start, size, first), builder), ((later, size, count - first), _Other(builder))
    return [([*cuts[:axis], [segment], *cuts[axis + 1 :]], to) for segment, to in halves]


def _is_scaled(kernel: Kernel) -> bool:
    match kernel.expr:
        case Apply("multiply" | "divide", (Load() as left, Load() as right)) if kernel.root is None:
            free = set(kernel.free)
            return not free & set(axes_of(right)) and bool(free & set(axes_of(left)))
    return False


@dataclass(frozen=True)
class _Other:
    """Takes the instructions for one of ACT and POOL, and has the other one do the same."""

    builder: Emits

    def emit(self, instruction: Instruction, /) -> None:
        """Takes the next instruction."""
        match instruction:
            case TensorScalar():
                fields = ("result", "source", "scalar0", "scalar1", "op0", "op1", "reverse")
                instruction = ActTensorScalar(**{name: getattr(instruction, name) for name in fields})
            case Activation(function="copy"):
                assert instruction.bias == 0.0, "a bias is left to ACT"
                instruction = TensorScalar(
                    result=instruction.result, source=instruction.source, scalar0=instruction.scale, scalar1=0.0,
                    op0="multiply", op1="bypass", reverse=0,
                )  # fmt: skip
        self.builder.emit(instruction)
