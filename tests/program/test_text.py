"""The text form of programs: an exact round trip, and one message for each way to write it wrong."""

import pytest
from hypothesis import given

from tests.program.strategies import programs
from tvm_neuron.errors import ProgramError
from tvm_neuron.isa import QUEUES
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.program import Program, parse_program, print_program

TABLES = """\
tensor 0 input "x" 1x4 float32     # read
tensor 1 output "a \\"b\\" # c" scalar float32
origin 0 Relu "r#1"
"""
MEMSET = "memset result=sbuf.float32{p=0;n=1;at=0;dims=1*4} value=0.0 origin=0"
LOAD = "dma_copy target=sbuf.float32{p=0;n=1;at=%s;dims=1*4} source=dram.float32{t=0;at=0;dims=4*1,1*4} ring=0"
TILE = "{p=0;n=1;at=0;dims=1*1}"
MATMUL = f"nc_matmul stationary=sbuf.bfloat16{TILE} moving=sbuf.bfloat16{TILE} psum=psum.float32{TILE} first=i0"


@given(programs)
def test_print_parse_round_trip(program: Program) -> None:
    assert parse_program(print_program(program)) == program


def test_written_by_hand() -> None:
    program = parse_program(f"{TABLES}\nloop 4 {{\n  # a comment\n  loop 2 {{\n {LOAD % '0+16*i1'}\n}}\n}}")
    assert [tensor.name for tensor in program.tensors] == ["x", 'a "b" # c']
    assert program.tensors[1].shape == ()
    assert [counts for counts, _ in program.instructions()] == [(4, 2)]
    assert parse_program(print_program(program)) == program


NO_TILE = "memset.result: '7' is no tile; write sbuf.bfloat16{p=0;n=128;at=0;dims=1*512} or dram.float32{...}"
NOT_AROUND = "counts a loop that is not around it; it stands in 0 loops"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fly away", "'fly' starts no line; write tensor, origin, loop N {, } or an instruction"),
        ("}", "no loop is open here"),
        ("loop 0 {", "a loop runs at least once and at most 16 loops nest"),
        ("loop x {", "invalid literal for int() with base 10: 'x'"),
        ('tensor 7 input "y" 1 float32', "the next tensor is number 2, not 7"),
        ('origin 0 Relu "y"', "the next origin is number 1, not 0"),
        ('tensor 2 input "y 1 float32', "'tensor' starts no line; write tensor, origin, loop N {, } or an instruction"),
        ("memset result=7", NO_TILE),
        (MEMSET.replace("0.0", "1e99"), "float too large to pack with f format"),
        (MEMSET + " colour=red", "memset.colour: memset has no operand 'colour'; it has result, value"),
        (MEMSET.replace("value=0.0 ", ""), "memset: operand value is missing"),
    ],
)
def test_an_unreadable_line(line: str, message: str) -> None:
    assert error_of(TABLES + line) == f"line 4: {message}: {line}"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("loop 4 {", "1 loops are still open at the end of the text; close each with }"),
        ("loop 4 {\n}", "line 5: the loop holds no instruction: }"),
        (MEMSET.replace("origin=0", "origin=9"), "memset: origin 9 is not in the table of 1 origins"),
        (
            MEMSET.replace("float32", "float8"),
            f"memset.result has dtype 'float8'; the hardware knows {', '.join(DTYPES)}",
        ),
        (MEMSET + " wait=gpu>=1^2", f"memset.wait: no queue 'gpu'; the queues are {', '.join(QUEUES)}"),
        (LOAD % "0+16*i0", f"dma_copy.target: address 0+16*i0 {NOT_AROUND}"),
        ((LOAD % "0").replace("t=0", "t=5"), "dma_copy.source: tensor 5 is not in the table of 2 tensors"),
        ((LOAD % "0").replace("ring=0", "ring=8"), "dma_copy.ring: 8 is outside [0, 7]"),
        (
            f"loop 2 {{\n{LOAD % '0+16*i0+4*i0'}\n}}",
            "dma_copy.target: address 0+16*i0+4*i0 names a loop twice, or a phase without a ring",
        ),
        (MATMUL, "nc_matmul.first: loops i0, but the instruction stands in 0 loops"),
        (
            'tensor 2 gift "y" 1 int8',
            "tensor 2 'y' is of kind 'gift'; it must be one of input, output, weight, scratch",
        ),
        ('tensor 2 input "y" 1x0 int8', "tensor 2 'y' has shape [1, 0]; every extent must be at least 1"),
    ],
)
def test_a_program_that_makes_no_sense(lines: str, message: str) -> None:
    assert error_of(TABLES + lines) == message


def error_of(text: str) -> str:
    with pytest.raises(ProgramError) as caught:
        parse_program(text)
    return str(caught.value)
