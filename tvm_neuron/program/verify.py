"""verify: a program keeps every rule of the instruction set and the device, and can't come to a standstill."""

import numpy as np

from tvm_neuron.errors import ProgramError
from tvm_neuron.hw import Device
from tvm_neuron.isa import QUEUES, DramTile, Instruction, Tile
from tvm_neuron.isa.engines import BY_NAME, of_dma
from tvm_neuron.isa.limits import check_dram_bounds, check_tile
from tvm_neuron.isa.operand import MAX_LOOP_DEPTH, ScalarKind, TileKind
from tvm_neuron.program.dynamic import expand, who
from tvm_neuron.program.form import check_form
from tvm_neuron.program.program import Program

_WRITABLE = ("output", "scratch")


def verify(program: Program, device: Device) -> None:
    """Checks operands over all iterations, each instruction's own limits, and every wait. Races are for `race`.

    Raises:
        ProgramError: a rule is broken; names the instruction, its model operator, the value and the limit.
    """
    check_form(program)
    _check_dram(program, device)
    for counts, instruction in program.instructions():
        try:
            _check_instruction(program, device, counts, instruction)
        except ProgramError as error:
            error.operator = program.origins[instruction.origin].name
            raise
    _check_queues(program, device)
    check_waits(program)


def _check_instruction(program: Program, device: Device, counts: tuple[int, ...], instruction: Instruction) -> None:
    name = who(program, instruction)
    if len(counts) > MAX_LOOP_DEPTH or any(count < 1 for count in counts):
        raise ProgramError(
            f"{name}: loops run {list(counts)} times; at most {MAX_LOOP_DEPTH} loops, each at least once"
        )
    for operand, kind, tile in instruction.tiles():
        is_dma = instruction.engine == "dma"
        _check_operand(program, device, counts, f"{name}, operand {operand}", kind, tile, is_dma)
    _check_scalars(instruction, name)
    if not BY_NAME[instruction.engine].clock_hz(device):
        raise ProgramError(f"{name}: {device.name} has no {BY_NAME[instruction.engine].title} engine")
    try:
        instruction.check(device)
    except ProgramError as error:
        raise ProgramError(f"{name}: {error}") from error


def _check_dram(program: Program, device: Device) -> None:
    """A core has its share of the chip's DRAM, and borrows that of the others."""
    needed, there = sum(tensor.size_bytes for tensor in program.tensors), device.dram_bytes * device.cores_per_chip
    if needed > there:
        raise ProgramError(
            f"weights, inputs, outputs and what is spilled take {needed} bytes of DRAM; {device.name} has {there}: "
            "use a smaller batch, or fewer operators in one part"
        )


def _check_operand(
    program: Program,
    device: Device,
    counts: tuple[int, ...],
    name: str,
    kind: TileKind | ScalarKind,
    tile: Tile | DramTile,
    is_dma: bool,
) -> None:
    space = tile.space if isinstance(tile, Tile) else "dram"
    spaces = kind.spaces if isinstance(kind, TileKind) else ("sbuf", "psum")
    if space not in spaces:
        raise ProgramError(f"{name}: lies in {space.upper()}; it must be in {' or '.join(spaces).upper()}")
    if kind.role != "reads" and any(step == 0 and count > 1 for step, count in tile.dims):
        raise ProgramError(f"{name}: writes the same bytes more than once through dimensions {tile.dims}")
    if isinstance(tile, Tile):
        check_tile(tile, device, counts, name, any_start=is_dma)
        return
    tensor = program.tensors[tile.tensor]
    check_dram_bounds(tile, tensor.elems, tensor.name, counts, name)
    if tile.dtype != tensor.dtype:
        raise ProgramError(f"{name}: takes tensor '{tensor.name}' as {tile.dtype}; it is {tensor.dtype}")
    if kind.role != "reads" and tensor.kind not in _WRITABLE:
        raise ProgramError(
            f"{name}: writes tensor '{tensor.name}', a {tensor.kind}; only outputs and scratch are written"
        )


def _check_scalars(instruction: Instruction, name: str) -> None:
    shape = instruction.destination.shape
    for operand, kind, tile in instruction.tiles():
        if isinstance(kind, ScalarKind) and tile.shape != (shape[0], 1):
            raise ProgramError(f"{name}, operand {operand}: is {list(tile.shape)}; a scalar is [{shape[0]}, 1] here")


def _check_queues(program: Program, device: Device) -> None:
    """Each queue counts its completions in a semaphore of its own."""
    queues = {instruction.queue for _, instruction in program.instructions()}
    rings = sum(map(of_dma, queues))
    if len(queues) > device.semaphores or rings > device.dma_engines * device.dma_queues:
        raise ProgramError(
            f"the program uses {len(queues)} queues, {rings} of them for DMA; {device.name} has {device.semaphores} "
            f"semaphores and {device.dma_engines * device.dma_queues} DMA queues"
        )


def check_waits(program: Program) -> None:
    """Every wait is for what comes earlier in program order, so the first instruction not yet run can always run.

    Raises:
        ProgramError: a wait is for more completions than come before it.
    """
    dynamic = expand(program)
    rows, queues, counts = dynamic.needs()
    before = np.zeros_like(counts)
    for queue in range(len(QUEUES)):
        waits = queues == queue
        before[waits] = np.searchsorted(np.flatnonzero(dynamic.queue == queue), rows[waits])
    late = np.flatnonzero(counts > before)
    if late.size:
        at = late[np.argmin(rows[late])]
        name = who(program, dynamic.statics[dynamic.number[rows[at]]])
        raise ProgramError(
            f"{name}: in iteration {dynamic.index[rows[at]].tolist()} it waits for {counts[at]} completions of "
            f"{QUEUES[queues[at]]}, but only {before[at]} come before it: it could wait for ever"
        )
