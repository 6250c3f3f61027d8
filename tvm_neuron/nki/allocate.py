"""assemble: a trace as a program, its logical tiles placed in SBUF and PSUM by their lifetimes, with waits."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from tvm_neuron.allocation.place import Buffer, peak_bytes
from tvm_neuron.allocation.place import place as place_buffers
from tvm_neuron.codegen.sync import synchronise
from tvm_neuron.isa import DramTile, Instruction, Tile
from tvm_neuron.isa.dtypes import DTYPES, size_bytes
from tvm_neuron.nki.emission import Place, Record
from tvm_neuron.nki.fit import FILLED, Fitted, fit, uses_of
from tvm_neuron.nki.mutable import set_apart
from tvm_neuron.nki.order import ordered
from tvm_neuron.nki.overwritten import check_overwritten
from tvm_neuron.nki.simplify import simplified
from tvm_neuron.nki.source import wrong
from tvm_neuron.nki.trace import Trace
from tvm_neuron.nki.view import Tensor
from tvm_neuron.program import DramTensor, Origin, Program

_ALIGN_BYTES = 32
_FULL = 7 / 8  # of a memory: tiles of many sizes alive at once leave gaps, and more is not worth a search for places


@dataclass(frozen=True)
class Assembled:
    """A program and the values of its constants; `names` are those of its tensors by number in the trace."""

    program: Program
    weights: Mapping[str, NDArray[Any]]
    names: Mapping[int, str]
    fitted: Fitted


def assemble(trace: Trace, outputs: set[int]) -> Assembled:
    """The program; `outputs` are the numbers of the tensors that it gives.

    Raises:
        KernelError: what is alive at one time does not fit on chip, the kernel's own addresses make tiles overlap, or
            it writes to an input that it does not return.
    """
    givens = set_apart(trace, outputs)
    records, fitted, offsets = _fitted(trace)
    origins = {at: number for number, at in enumerate(dict.fromkeys(record.at for record in records))}
    tiles = (tile for record in records for *_, tile in record.instruction.tiles())
    touched = {tile.tensor for tile in tiles if isinstance(tile, DramTile)}
    used = [
        tensor
        for tensor in trace.tensors
        if tensor.memory == "hbm" and (tensor.number in touched or tensor.kind != "scratch")
    ]
    used.sort(key=lambda tensor: givens.get(tensor.number, tensor.number))  # inputs in the order of the call
    table = {tensor.number: index for index, tensor in enumerate(used)}
    names = {tensor.number: tensor.name or f"{tensor.kind}{tensor.number}" for tensor in used}
    tensors = tuple(DramTensor(names[t.number], _kind(t, outputs), trace.shapes[t.number], t.dtype) for t in used)
    body = tuple(_located(trace, record, offsets, table, origins[record.at]) for record in records)
    check_overwritten(trace, records, body)
    program = Program(tensors, tuple(Origin(at, "kernel") for at in origins), body)
    weights = {
        names[number]: values.astype(DTYPES[trace.tensors[number].dtype]) for number, values in trace.constants.items()
    }
    return Assembled(synchronise(program, trace.device), weights, names, fitted)


def _fitted(trace: Trace) -> tuple[list[Record], Fitted, dict[Place, int]]:
    """The records that fit, and the first byte of every logical tile: where gaps keep one out, more is spilled."""
    written = simplified(trace)
    for filled in FILLED:
        records, fitted = fit(trace, written, filled)
        records = ordered(trace, records)
        sbuf, failed = _offsets(trace, records, "sbuf")
        if not failed or trace.is_placed:
            break
    psum, beyond = _offsets(trace, records, "psum")
    for memory, why in (("sbuf", failed), ("psum", beyond)):
        if why:
            raise _too_much(trace, why, memory)
    return records, fitted, sbuf | psum


def _kind(tensor: Tensor, outputs: set[int]) -> str:
    return "output" if tensor.number in outputs else tensor.kind


def _offsets(trace: Trace, records: list[Record], memory: str) -> tuple[dict[Place, int], list[Buffer]]:
    """The first byte of every logical tile there; where one finds no room, it and all that are alive beside it."""
    device, is_psum = trace.device, memory == "psum"
    unit = device.psum_bank_bytes if is_psum else _ALIGN_BYTES
    capacity = device.psum_bytes_per_partition if is_psum else device.sbuf_bytes_per_partition
    uses = uses_of(trace, records, memory)
    buffers, offsets, fixed = list[Buffer](), dict[Place, int](), 0
    for place, steps in uses.items():
        tensor = trace.tensors[place[0]]
        size = -(-tensor.elems * size_bytes(tensor.dtype) // unit) * unit
        if tensor.addresses:
            offsets[place] = tensor.addresses[place[1]][1]
            fixed = max(fixed, -(-(offsets[place] + size) // unit) * unit)
        else:
            buffers.append(Buffer(place, size, steps[0], steps[-1]))
    # What the kernel places has the memory up to its end to itself.
    found, failed = _placed(buffers, capacity - fixed, len(records))
    offsets |= {place: fixed + found[place] for place in uses if place in found}
    return offsets, [failed, *(each for each in buffers if each != failed and each.overlaps(failed))] if failed else []


def _placed(buffers: list[Buffer], capacity: int, steps: int) -> tuple[dict[object, int], Buffer | None]:
    """Offsets that leave what was used last alone for as many steps as there is room for: nothing waits for it then.

    And the first that finds no room.
    """
    slack = steps
    while True:
        longer = [replace(buffer, last=min(buffer.last + slack, steps)) for buffer in buffers]
        if not slack or peak_bytes(longer) <= _FULL * capacity:
            found, failed = place_buffers(longer, capacity)
            if failed is None or not slack:
                return found, failed
        slack //= 2


def _too_much(trace: Trace, full: list[Buffer], memory: str) -> Exception:
    failed, tensor = full[0], trace.tensors[full[0].name[0]]  # type: ignore[index]
    alive = sorted({trace.tensors[each.name[0]].made for each in full})  # type: ignore[index]
    device = trace.device
    capacity = device.sbuf_bytes_per_partition if memory == "sbuf" else device.psum_bytes_per_partition
    return wrong(
        f"{memory.upper()} is full: {failed.size} bytes of each partition for a {tensor.dtype} tile find no room; "
        f"{peak_bytes(full)} bytes are alive at once, {device.name} has {capacity}. Alive beside it are tiles "
        f"made at {', '.join(alive[:6])}: use smaller tiles, or make them where they are used",
        tensor.made,
    )


def _located(
    trace: Trace, record: Record, offsets: dict[Place, int], table: dict[int, int], origin: int
) -> Instruction:
    """The instruction with the addresses of its tiles."""
    changes: dict[str, Any] = {"origin": origin}
    for name, _, tile in record.instruction.tiles():
        if isinstance(tile, DramTile):
            changes[name] = replace(tile, tensor=table[tile.tensor])
        else:
            assert isinstance(tile, Tile)
            place = record.places[name]
            addresses = trace.tensors[place[0]].addresses
            partition = tile.partition.plus(addresses[place[1]][0]) if addresses else tile.partition
            changes[name] = replace(tile, offset=tile.offset.plus(offsets[place]), partition=partition)
    return record.instruction.replace(**changes)
