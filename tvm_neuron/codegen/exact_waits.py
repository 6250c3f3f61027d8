"""with_exact_waits: loops are written out whose instructions would wait longer than they have to.

A wait counts instructions of another queue, linear in the loops around it. What an iteration needs of another loop is
often no such number: of 7 x 7 windows with 12 heads, the first 128 rows need what the loop over windows does first, the
next what another loop does. Then all iterations wait for what the last one needs, and engines stand still. Transfers of
weights in a loop are held back for what the first of them may not disturb. Written out, each waits for its own.
"""

from dataclasses import fields, replace
from math import prod
from typing import Any

from tvm_neuron.codegen.emit.emitter import WEIGHTS_QUEUE
from tvm_neuron.codegen.emit_stage import Emitted
from tvm_neuron.codegen.sync import waits_too_long
from tvm_neuron.hw import Device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Instruction, Tile
from tvm_neuron.program import Loop
from tvm_neuron.program.program import unroll, walk

_MOST = 10_000  # instructions more: a file takes some 30 bytes for each, and waits are found in a second for so many


def with_exact_waits(emitted: Emitted, device: Device) -> Emitted:
    """The same with such loops written out; as it was without any, or where that takes very many instructions."""
    late = waits_too_long(emitted.program, device)
    found: list[Loop] = []
    number = more = 0
    for node in emitted.program.body:
        its = list(walk((node,)))
        numbers = range(number, number := number + len(its))
        is_late = not late.isdisjoint(numbers) or any(_is_of_weights(each) for _, each in its)
        if isinstance(node, Loop) and is_late:
            found.append(node)
            more += sum(prod(counts) for counts, _ in its) - 1
    if not 0 < more <= _MOST:
        return emitted
    written = {id(node): [_alone(each, at) for at, each in unroll((node,))] for node in found}
    body = [part for node in emitted.program.body for part in written.get(id(node), [node])]
    return replace(emitted, program=emitted.program.with_body(tuple(body)))


def _is_of_weights(instruction: Instruction) -> bool:
    return isinstance(instruction, DmaCopy) and instruction.ring == WEIGHTS_QUEUE


def _alone(instruction: Instruction, indices: tuple[int, ...]) -> Instruction:
    """What the instruction is in one iteration of the loops around it."""
    found: dict[str, Any] = {}
    for field in fields(instruction):  # type: ignore[arg-type]
        value = getattr(instruction, field.name)
        if isinstance(value, Affine):
            found[field.name] = Affine(value.at(indices))
        elif isinstance(value, Tile):
            offset, partition = Affine(value.offset.at(indices)), Affine(value.partition.at(indices))
            found[field.name] = replace(value, offset=offset, partition=partition)
        elif isinstance(value, DramTile):
            found[field.name] = replace(value, offset=Affine(value.offset.at(indices)))
        elif field.name == "first" and value is not None:  # the loops in whose first iterations a sum begins
            found[field.name] = None if any(indices[depth] for depth in value) else ()
    return instruction.replace(**found)
