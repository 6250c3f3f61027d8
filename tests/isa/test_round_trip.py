"""Every instruction survives bytes and text, whatever its operands."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.isa.strategies import affines, instructions
from tvm_neuron.errors import NeffError, ProgramError
from tvm_neuron.isa import BY_MNEMONIC, BY_OPCODE, ISA, Affine, Instruction
from tvm_neuron.isa.codec import Reader, Writer

_QUICK = settings(max_examples=15, deadline=None)


def decode(data: bytes) -> Instruction:
    reader = Reader(data)
    found = BY_OPCODE[reader.uint()].decode_operands(reader)
    assert reader.is_done
    return found


@pytest.mark.parametrize("cls", ISA, ids=lambda cls: cls.mnemonic)
@given(data=st.data())
@_QUICK
def test_bytes(cls: type[Instruction], data: st.DataObject) -> None:
    instruction = data.draw(instructions(cls))
    out = Writer()
    instruction.encode(out)
    assert decode(out.bytes()) == instruction


@pytest.mark.parametrize("cls", ISA, ids=lambda cls: cls.mnemonic)
@given(data=st.data())
@_QUICK
def test_text(cls: type[Instruction], data: st.DataObject) -> None:
    instruction = data.draw(instructions(cls))
    mnemonic, *words = str(instruction).split()
    assert BY_MNEMONIC[mnemonic].parse_operands(words) == instruction


@pytest.mark.parametrize("cls", ISA, ids=lambda cls: cls.mnemonic)
@given(data=st.data())
@_QUICK
def test_cut_bytes_are_refused(cls: type[Instruction], data: st.DataObject) -> None:
    out = Writer()
    data.draw(instructions(cls)).encode(out)
    whole = out.bytes()
    with pytest.raises(NeffError):
        decode(whole[: data.draw(st.integers(1, len(whole) - 1))])


@pytest.mark.parametrize("cls", ISA, ids=lambda cls: cls.mnemonic)
def test_missing_and_unknown_operands_are_named(cls: type[Instruction]) -> None:
    with pytest.raises(ProgramError, match=f"{cls.mnemonic}: operand .*{cls.kinds()[0][0]}.* missing"):
        cls.parse_operands([])
    with pytest.raises(ProgramError, match=f"{cls.mnemonic}.colour: {cls.mnemonic} has no operand 'colour'"):
        cls.parse_operands(["colour=red"])


@given(affines(), st.data())
@_QUICK
def test_the_span_of_an_address_holds_all_its_values(address: Affine, data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(1, 5), min_size=16, max_size=16))
    indices = [data.draw(st.integers(0, count - 1)) for count in counts]
    low, high = address.span(counts)
    assert low <= address.at(indices) <= high


def test_the_span_of_steps_within_the_slots_of_a_ring() -> None:
    """Eight banks of 2,048 bytes, in each of which a loop takes steps of 788: the last is at 1,576 of the last bank."""
    address = Affine(0, ((0, 2048), (1, 788)), 0, 16384)
    assert address.span([20, 3]) == (0, 14336 + 1576)
    assert address.span([20, 4]) == (0, 16380)  # the fourth may leave its slot
