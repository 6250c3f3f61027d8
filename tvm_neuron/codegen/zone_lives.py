"""zone_lives: from which kernel to which some zones of SBUF are in use: weights lie there before and after."""

from collections.abc import Sequence

from tvm_neuron.allocation.place import Buffer
from tvm_neuron.codegen.emit.diagonals import diagonals_bytes
from tvm_neuron.codegen.emit.positions import positions_bytes
from tvm_neuron.codegen.emit.scale_group import scaled_bytes
from tvm_neuron.codegen.zones import Zones
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Kernel


def zone_lives(zones: Zones, kernels: Sequence[Kernel], device: Device) -> dict[int, Buffer]:
    """By its first byte, each zone that only some kernels use, with the first and the last step of these.

    Not that for temporaries: fewer of them at a time let engines wait for each other.
    """
    made_bytes = zones.masks_bytes + zones.diagonals_bytes
    parts = {
        zones.positions_at: (zones.positions_bytes, [not k.by_dma and positions_bytes(k) > 0 for k in kernels]),
        zones.masks_at: (made_bytes, [diagonals_bytes([k], device) > 0 for k in kernels]),
        zones.scaled_at: (zones.scaled_bytes, [scaled_bytes([k]) > 0 for k in kernels]),
    }
    steps = {at: [step for step, is_used in enumerate(uses) if is_used] for at, (_, uses) in parts.items()}
    return {at: Buffer(at, size, steps[at][0], steps[at][-1]) for at, (size, _) in parts.items() if size and steps[at]}
