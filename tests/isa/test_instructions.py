"""Laws that hold for every instruction of the set, so that a new one is tested on arrival."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.isa.examples import EXAMPLES
from tvm_neuron.hw import CHIPS, load_device
from tvm_neuron.isa import BY_MNEMONIC, ISA, DramTile, Instruction, Tile
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
        elif isinstance(kind, TileKind) and kind.role == "reads":
            found.append(random.standard_normal((*lead, *value.shape)).astype(np.float32))
    return found


@_EACH
@given(p=st.integers(1, 128), n=st.integers(1, 512))
@_QUICK
def test_compute_gives_the_shape_of_the_destination(cls: type[Instruction], p: int, n: int) -> None:
    instruction = EXAMPLES[cls.mnemonic](p, n)
    for chip in CHIPS:
        instruction.check(load_device(chip))
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
