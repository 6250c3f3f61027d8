"""tries: a stage in tiles with its kernels in several orders, and its tensors in several places, to choose from.

No rule tells which one is best. An order in which engines wait less for each other has more tensors alive at once, or
has them lie higher, which leaves less memory for weights; what that costs only the clock of the whole program tells.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from itertools import islice

from tvm_neuron.codegen.residents import Room, place_within, tight_rooms
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.tiles.orders import orders
from tvm_neuron.codegen.tiles.reorder import reorderable
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Kernel

_AHEAD = (24, 12, 6, 8, 4, 1)  # kernels that are looked at for the next one; 1 keeps the order
_SHARES = (1.0, 0.93, 0.85, 0.78, 0.7)  # of the memory for tensors, what another order may take at most, in turn
_USUAL_ORDERS, _USUAL_PLACES = 3, 2  # tried where the time to compile counts


def tries(
    stage: Stage, room: Room, untiled: Set[Kernel], device: Device, is_thorough: bool
) -> Iterator[tuple[Stage, Room]]:
    """The stage in several orders, the first as it is placed, others in several places; many if `is_thorough`."""
    seen: list[list[object]] = []
    for ahead in _AHEAD if is_thorough else _AHEAD[:_USUAL_ORDERS]:
        ordered, its = in_order(stage, room, untiled, ahead, device)
        values = _as_values(ordered.kernels)
        if values in seen:
            continue
        if not seen:
            yield ordered, its
        if seen or is_thorough:
            yield from ((ordered, place) for place in islice(tight_rooms(its), None if is_thorough else _USUAL_PLACES))
        seen.append(values)


def _as_values(kernels: Sequence[Kernel]) -> list[object]:
    """Equal if the order is: copies that another engine makes are new kernels each time."""
    return [(kernel.out, kernel.out_maps, kernel.expr) for kernel in kernels]


def in_order(stage: Stage, room: Room, untiled: Set[Kernel], ahead: int, device: Device) -> tuple[Stage, Room]:
    """With the kernels of tiles in an order in which engines wait less, if all tensors find their room then too."""
    ring = device.sbuf_bytes_per_partition - room.zones.tensors_at - room.zones.tensors_bytes
    groups = reorderable(stage.kernels, untiled, stage.partition_of, ring)
    for kernels in orders(stage, groups, _SHARES, room.zones.tensors_bytes, ahead, device):
        other = replace(stage, kernels=kernels)
        found = place_within(other, device, room.plan.spilled_bytes)
        if found is not None:
            return other, found
    return stage, room
