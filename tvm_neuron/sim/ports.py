"""Ports: which ways into a memory two engines of a program share, and which instructions go there."""

from collections.abc import Sequence

import numpy as np

from tvm_neuron.hw import Device
from tvm_neuron.isa import QUEUES, Instruction, Tile
from tvm_neuron.isa.engines import PORTS, Port
from tvm_neuron.program.dynamic import Dynamic


def shared_ports(device: Device, dynamic: Dynamic) -> list[Port]:
    """Those that two engines of the program have to take turns at."""
    there = {QUEUES[code] for code in np.unique(dynamic.queue).tolist()}
    return [port for port in PORTS if getattr(device, port.accesses) == 1 and there.issuperset(port.engines)]


def accesses(instruction: Instruction, port: Port) -> bool:
    """Whether it is one of the instructions of which only one accesses the port's memory at a time."""
    return instruction.engine in port.engines and any(
        isinstance(tile, Tile) and tile.space == port.space for *_, tile in instruction.tiles()
    )


def partners(queue: str, shared: Sequence[Port]) -> dict[int, int]:
    """By port that the queue's engine shares: the queue of the other one."""
    return {
        at: QUEUES.index(next(engine for engine in port.engines if engine != queue))
        for at, port in enumerate(shared)
        if queue in port.engines
    }
