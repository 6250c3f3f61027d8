"""zero_slots: POOL makes slots zero amid the instructions of kernels that leave it time, before others need them."""

from tvm_neuron.codegen.emit.builder import Builder
from tvm_neuron.codegen.overlap.work import work_of
from tvm_neuron.hw import Device
from tvm_neuron.schedule.kernel import Kernel
from tvm_neuron.schedule.tiling import PARTITIONS
from tvm_neuron.sim.clock import clock_hz, duration_ps

_NUMBERS = 6  # of each column at once, 0.3 us: others wait no longer for it
_SHARE = 0.5  # of the time that POOL is idle at most: it needn't be so when others need it


def zero_slots(builder: Builder, begin: int, kernel: Kernel, device: Device) -> None:
    """Zeros as many numbers as POOL has time for, evenly spread between the kernel's nodes, from node `begin` on."""
    left = builder.slots.left
    if not left:
        return
    work = work_of(kernel, device)
    cycles = PARTITIONS * _NUMBERS // 2 + device.instruction_overhead_cycles
    each = duration_ps(cycles, clock_hz(device, "pool"))
    times = min(int(_SHARE * (max(work.values()) - work["pool"])) // each, -(-left // _NUMBERS))
    nodes = builder.body[begin:]
    del builder.body[begin:]
    done = 0
    for number, node in enumerate(nodes, 1):
        builder.body.append(node)
        while done * len(nodes) < times * number:
            for instruction in builder.slots.zero(_NUMBERS):
                builder.emit(instruction)
            done += 1
