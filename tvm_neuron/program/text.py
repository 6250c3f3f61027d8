"""The text form of a program: what `disassemble` prints and tests are written in.

    tensor 0 input "data_0" 1x3x224x224 float32     # index, kind, name, shape, dtype
    origin 0 Conv "conv1"                           # index, operator type, name
    loop 4 {
      dma_copy target=sbuf.float32{...} source=dram.float32{...} ring=0 wait=pe>=0+1*i0^4 origin=0
    }

`#` starts a comment. A tensor without dimensions has the shape `scalar`.
"""

import json
import re
from collections.abc import Iterator

from tvm_neuron.errors import ProgramError
from tvm_neuron.isa import BY_MNEMONIC, Instruction
from tvm_neuron.isa.operand import MAX_LOOP_DEPTH
from tvm_neuron.program.form import check_form
from tvm_neuron.program.program import DramTensor, Loop, Node, Origin, Program

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|#.*|[^\s#"]+|"')
_PLAIN = re.compile(r"[\w.:/-]+")


def print_program(program: Program) -> str:
    """The program as text; `parse_program` gives back the same program."""
    lines = [
        f"tensor {index} {tensor.kind} {json.dumps(tensor.name)} {_print_shape(tensor.shape)} {tensor.dtype}"
        for index, tensor in enumerate(program.tensors)
    ]
    lines += [
        f"origin {n} {_print_word(origin.op)} {json.dumps(origin.name)}" for n, origin in enumerate(program.origins)
    ]
    lines += _print_body(program.body, "")
    return "".join(line + "\n" for line in lines)


def _print_shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _print_word(text: str) -> str:
    return text if _PLAIN.fullmatch(text, 0) and text.isascii() else json.dumps(text)


def _print_body(body: tuple[Node, ...], indent: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, Loop):
            yield f"{indent}loop {node.count} {{"
            yield from _print_body(node.body, indent + "  ")
            yield f"{indent}}}"
        else:
            yield f"{indent}{node}"


def parse_program(text: str) -> Program:
    """Reads what `print_program` wrote, or what was written by hand.

    Raises:
        ProgramError: a line can't be read (the message has its number and text), or a reference leads nowhere.
    """
    parser = _Parser()
    for number, line in enumerate(text.split("\n"), 1):
        words = [word for word in _WORD.findall(line) if not word.startswith("#")]
        if not words:
            continue
        try:
            parser.take(words)
        except (ProgramError, ValueError, OverflowError) as error:
            raise ProgramError(f"line {number}: {error}: {line.strip()}") from error
    if len(parser.bodies) > 1:
        raise ProgramError(f"{len(parser.bodies) - 1} loops are still open at the end of the text; close each with }}")
    program = Program(tuple(parser.tensors), tuple(parser.origins), tuple(parser.bodies[0]))
    check_form(program)
    return program


class _Parser:
    """The tables and open loops while lines are read."""

    def __init__(self) -> None:
        self.tensors: list[DramTensor] = []
        self.origins: list[Origin] = []
        self.counts: list[int] = []
        self.bodies: list[list[Node]] = [[]]

    def take(self, words: list[str]) -> None:
        """One line."""
        match words:
            case ["tensor", index, kind, name, shape, dtype]:
                _need_next(index, self.tensors, "tensor")
                extents = () if shape == "scalar" else tuple(int(extent) for extent in shape.split("x"))
                self.tensors.append(DramTensor(_read_word(name), kind, extents, dtype))
            case ["origin", index, op, name]:
                _need_next(index, self.origins, "origin")
                self.origins.append(Origin(_read_word(name), _read_word(op)))
            case ["loop", count, "{"]:
                self._open(int(count))
            case ["}"]:
                self._close()
            case [mnemonic, *operands] if mnemonic in BY_MNEMONIC:
                self.bodies[-1].append(_parse_instruction(mnemonic, operands))
            case [word, *_]:
                raise ProgramError(f"'{word}' starts no line; write tensor, origin, loop N {{, }} or an instruction")

    def _open(self, count: int) -> None:
        if count < 1 or len(self.counts) == MAX_LOOP_DEPTH:
            raise ProgramError(f"a loop runs at least once and at most {MAX_LOOP_DEPTH} loops nest")
        self.counts.append(count)
        self.bodies.append([])

    def _close(self) -> None:
        if not self.counts:
            raise ProgramError("no loop is open here")
        body = tuple(self.bodies.pop())
        if not body:
            raise ProgramError("the loop holds no instruction")
        self.bodies[-1].append(Loop(self.counts.pop(), body))


def _parse_instruction(mnemonic: str, operands: list[str]) -> Instruction:
    return BY_MNEMONIC[mnemonic].parse_operands(operands)


def _need_next(index: str, table: list[DramTensor] | list[Origin], what: str) -> None:
    if index != str(len(table)):
        raise ProgramError(f"the next {what} is number {len(table)}, not {index}")


def _read_word(word: str) -> str:
    return str(json.loads(word)) if word.startswith('"') else word
