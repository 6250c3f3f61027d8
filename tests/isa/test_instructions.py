"""Laws that hold for every instruction of the set, so that a new one is tested on arrival."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.isa.examples import EXAMPLES, POSSIBLE, dram, sbuf
from tvm_neuron.errors import PositionError, ProgramError
from tvm_neuron.hw import CHIPS, load_device
from tvm_neuron.isa import (
    BY_MNEMONIC,
    ISA,
    DmaGather,
    DramTile,
    Instruction,
    MatmulPairs,
    RangeSelect,
    TensorScalarBits,
    TensorTensorBits,
    Tile,
)
from tvm_neuron.isa.manual import PATH, layouts, manual
from tvm_neuron.isa.operand import ScalarKind, TileKind

_QUICK = settings(max_examples=25, deadline=None)
_EACH = pytest.mark.parametrize("cls", ISA, ids=lambda cls: cls.mnemonic)


def sources(instruction: Instruction, lead: tuple[int, ...] = ()) -> list:
    """Random values for what it reads, with `lead` axes in front."""
    random = np.random.default_rng(1)
    found = []
    for name, kind in instruction.kinds():
        value = getattr(instruction, name)
        if isinstance(kind, ScalarKind) and isinstance(value, Tile):
            free = len(instruction.destination.shape) - 1
            found.append(random.standard_normal((*lead, value.partitions, *(1,) * free)).astype(np.float32))
        elif isinstance(kind, ScalarKind):
            found.append(np.float32(value))
        elif isinstance(kind, TileKind) and kind.role == "reads" and value.dtype == "int32":
            found.append(random.integers(0, POSSIBLE, (*lead, *value.shape), np.int32))
        elif isinstance(kind, TileKind) and kind.role == "reads":
            found.append(random.standard_normal((*lead, *value.shape)).astype(np.float32))
    return found


@_EACH
@given(p=st.integers(1, 128), n=st.integers(1, 512))
@_QUICK
def test_compute_gives_the_shape_of_the_destination(cls: type[Instruction], p: int, n: int) -> None:
    instruction = EXAMPLES[cls.mnemonic](p, n)
    for device in map(load_device, CHIPS):
        if isinstance(instruction, DmaGather) and not device.dma_indirect_ns:
            with pytest.raises(ProgramError, match=f"{device.name} has no descriptors with computed addresses"):
                instruction.check(device)
        elif isinstance(instruction, RangeSelect) and device.core_generation < 3:
            with pytest.raises(ProgramError, match=f"{device.name} has NeuronCore-v{device.core_generation}; it is of"):
                instruction.check(device)
        elif isinstance(instruction, MatmulPairs) and device.fp8_matmul_rows < 2:
            with pytest.raises(
                ProgramError, match=f"{device.name} multiplies no two 8-bit floats at a time; trn2 does"
            ):
                instruction.check(device)
        else:
            instruction.check(device)
    assert instruction.compute(*sources(instruction)).shape == instruction.destination.shape


@_EACH
def test_loops_are_leading_axes(cls: type[Instruction]) -> None:
    instruction = EXAMPLES[cls.mnemonic](8, 6)
    many = sources(instruction, (3, 2))
    result = np.broadcast_to(instruction.compute(*many), (3, 2, *instruction.destination.shape))
    for turn in np.ndindex(3, 2):
        one = [source[turn] if np.ndim(source) else source for source in many]
        assert result[turn].tobytes() == instruction.compute(*one).astype(result.dtype).tobytes()


@_EACH
@pytest.mark.parametrize("chip", CHIPS)
@given(p=st.integers(1, 128), n=st.integers(1, 511))
@_QUICK
def test_cost_is_positive_and_does_not_fall_as_a_tile_grows(cls: type[Instruction], chip: str, p: int, n: int) -> None:
    device = load_device(chip)
    cost = EXAMPLES[cls.mnemonic](p, n).cost(device)
    longer = EXAMPLES[cls.mnemonic](p, n + 1).cost(device)
    assert 0 < cost.busy_cycles <= longer.busy_cycles
    assert cost.latency_cycles > 0
    assert cost.macs <= longer.macs
    assert cost.dram_bytes <= longer.dram_bytes
    moved = any(isinstance(tile, DramTile) for _, _, tile in EXAMPLES[cls.mnemonic](p, n).tiles())
    assert (cost.dram_bytes > 0) == moved


@_EACH
def test_the_formula_names_what_is_written(cls: type[Instruction]) -> None:
    instruction = EXAMPLES[cls.mnemonic](4, 4)
    written = next(name for name, kind, _ in instruction.tiles() if kind.role != "reads")
    assert (inspect.cleandoc(cls.__doc__ or "")).startswith(f"{written}[")


def test_every_instruction_has_an_example() -> None:
    assert set(EXAMPLES) == set(BY_MNEMONIC)


@pytest.mark.parametrize("missing", ["docstring", "compute", "cost"])
def test_an_instruction_without_meaning_or_cost_cannot_be_declared(missing: str) -> None:
    body = {"compute": lambda self: None, "cost": lambda self, device: None, "__annotations__": {}, "__doc__": "x"}
    body.pop({"docstring": "__doc__"}.get(missing, missing))
    with pytest.raises(TypeError, match="must have a docstring, compute and cost"):
        type(Instruction)("Bad", (Instruction,), body, opcode=0xFF, engine="pe", mnemonic="bad")


def test_layouts_are_those_of_this_version(golden) -> None:
    golden("isa.txt", layouts())


def test_the_manual_is_current() -> None:
    assert PATH.read_text() == manual(), "run python -m tvm_neuron.isa.manual"


def test_a_gather_takes_the_rows_at_its_positions() -> None:
    instruction = DmaGather(sbuf(3, 4), dram(5, 3, 4), sbuf(3, 4, dtype="int32"), 0)
    rows = np.arange(20, dtype=np.float32).reshape(5, 1, 4).repeat(3, 1)
    positions = np.array([4, 0, 2], np.int32)
    found = instruction.compute(rows, np.broadcast_to(positions[:, None], (3, 4)))
    np.testing.assert_array_equal(found, rows[positions, 0])


def test_operations_on_bits_take_int32_alone() -> None:
    for instruction in (
        TensorTensorBits(sbuf(3, 4), sbuf(3, 4), sbuf(3, 4), "bitwise_and"),
        TensorScalarBits(sbuf(3, 4), sbuf(3, 4), 1, "bitwise_and"),
    ):
        with pytest.raises(ProgramError, match="bfloat16; operations on bits take int32 alone"):
            instruction.check(load_device("inf1"))


@pytest.mark.parametrize("position", [-1, 5])
def test_a_gather_refuses_a_position_outside(position: int) -> None:
    instruction = DmaGather(sbuf(1, 2), dram(5, 1, 2), sbuf(1, 2, dtype="int32"), 0)
    with pytest.raises(PositionError, match=f"position {position} lies outside of the 5 elements"):
        instruction.compute(np.zeros((5, 1, 2), np.float32), np.array([[0, position]], np.int32))


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (DmaGather(sbuf(3, 4), dram(5, 3, 4), sbuf(3, 4), 0), "positions are bfloat16; they must be int32"),
        (DmaGather(sbuf(3, 4), dram(3, 4), sbuf(3, 4, dtype="int32"), 0), r"from \[3, 4\] at \[3, 4\] to \[3, 4\]"),
    ],
)
def test_a_gather_refuses_what_does_not_fit(instruction: DmaGather, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        instruction.check(load_device("inf2"))
