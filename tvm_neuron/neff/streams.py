"""The bytes of engine streams.

A stream is the number of its nodes and the nodes. A node is its number in the program, less the number before it in
the stream, then an instruction (opcode first) or a loop: opcode 0, count, and a stream.
"""

from tvm_neuron.errors import NeffError
from tvm_neuron.isa import BY_OPCODE
from tvm_neuron.isa.codec import Reader, Writer
from tvm_neuron.isa.operand import MAX_LOOP_DEPTH
from tvm_neuron.program.streams import Step, Stream, StreamLoop

_LOOP = 0
MAX_NODES = 1 << 24
MAX_TRIPS = 1 << 32


def encode_stream(stream: Stream) -> bytes:
    """The section of one queue."""
    out = Writer()
    _encode(out, stream, -1)
    return out.bytes()


def _encode(out: Writer, stream: Stream, last: int) -> int:
    out.uint(len(stream))
    for node in stream:
        out.uint(node.number - last - 1)
        last = node.number
        if isinstance(node, Step):
            node.instruction.encode(out)
        else:
            out.uint(_LOOP)
            out.uint(node.count)
            last = _encode(out, node.body, last)
    return last


def decode_stream(data: bytes, queue: str) -> Stream:
    """The stream of `queue`.

    Raises:
        NeffError: an opcode is unknown, an instruction is on the wrong queue, a count is too large, data are left over.
    """
    reader = Reader(data)
    stream, _ = _decode(reader, queue, -1, 0)
    if not reader.is_done:
        raise NeffError(f"the stream ends at byte {reader.position} of {len(data)}")
    return stream


def _decode(data: Reader, queue: str, last: int, depth: int) -> tuple[Stream, int]:
    if depth > MAX_LOOP_DEPTH:
        raise NeffError(f"loops nest deeper than {MAX_LOOP_DEPTH} at byte {data.position}")
    nodes: list[Step | StreamLoop] = []
    for _ in range(data.count(MAX_NODES, "instructions")):
        number = last = last + 1 + data.count(MAX_NODES, "instructions skipped")
        opcode = data.uint()
        if opcode == _LOOP:
            count = data.count(MAX_TRIPS, "trips of a loop")
            body, last = _decode(data, queue, last, depth + 1)
            nodes.append(StreamLoop(number, count, body))
            continue
        if opcode not in BY_OPCODE:
            raise NeffError(f"unknown opcode {opcode:#x} at byte {data.position}; a newer compiler may have written it")
        instruction = BY_OPCODE[opcode].decode_operands(data)
        if instruction.queue != queue:
            raise NeffError(f"{instruction.mnemonic} of queue '{instruction.queue}' is in it")
        nodes.append(Step(number, instruction))
    return tuple(nodes), last
