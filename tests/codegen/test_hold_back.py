"""Weights wait where others would queue behind them, by the clock, and nowhere else."""

from collections.abc import Iterator

import numpy as np
import pytest

from tvm_neuron.codegen.emit.emitter import LOAD_QUEUE, STORE_QUEUE, WEIGHTS_QUEUE
from tvm_neuron.codegen.hold_back import hold_back
from tvm_neuron.codegen.sync import synchronise
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Activation, DmaCopy, DramTile, Instruction, Matmul, Tile, affine
from tvm_neuron.isa.dtypes import DTYPES
from tvm_neuron.program import DramTensor, Loop, Node, Origin, Program
from tvm_neuron.program.race import check_races
from tvm_neuron.program.verify import verify
from tvm_neuron.sim import Machine, time_program

DEVICE = load_device("inf1")
COLUMNS = DEVICE.pe_columns
WEIGHTS = 16  # transfers, of so many columns each
WIDE = 16 * COLUMNS
TENSORS = (
    DramTensor("x", "input", (128, 256), "bfloat16"),
    DramTensor("w", "weight", (WEIGHTS * 128, WIDE), "bfloat16"),
    DramTensor("y", "output", (COLUMNS, 256), "bfloat16"),
    DramTensor("z", "output", (COLUMNS, 256), "bfloat16"),
)


def _sbuf(at: int, elems: int, partitions: int = 128) -> Tile:
    return Tile("sbuf", "bfloat16", affine(0), partitions, affine(at), ((1, elems),))


def _dram(tensor: int, rows: int, elems: int, at: int = 0) -> DramTile:
    return DramTile(tensor, "bfloat16", affine(at), ((TENSORS[tensor].shape[1], rows), (1, elems)))


X, HALF, BACK, FIRST = _sbuf(0, 256), _sbuf(512, 256, COLUMNS), _sbuf(1024, 256, COLUMNS), 2048
PSUM = Tile("psum", "float32", affine(0), COLUMNS, affine(0), ((1, 256),))
OTHER = Tile("psum", "float32", affine(0), COLUMNS, affine(2048), ((1, 256),))


def _network(long: int, is_stored: bool = True, is_looped: bool = False) -> Program:
    """A product by the first weights, which goes to DRAM and comes back; `long` products; then one by each weights."""
    weights = [
        DmaCopy(_sbuf(FIRST + 2 * n * WIDE, WIDE), _dram(1, 128, WIDE, 128 * n * WIDE), WEIGHTS_QUEUE)
        for n in range(WEIGHTS)
    ]
    body: list[Node] = [DmaCopy(X, _dram(0, 128, 256), WEIGHTS_QUEUE), weights[0]]
    body += [Matmul(_sbuf(FIRST, COLUMNS), X, PSUM, ()), Activation(HALF, PSUM, 1.0, 0.0, "relu")]
    if is_stored:
        body.append(DmaCopy(_dram(2, COLUMNS, 256), HALF, STORE_QUEUE))
        body.append(DmaCopy(BACK, _dram(2, COLUMNS, 256), LOAD_QUEUE))
    body.append(Loop(long, (Matmul(_sbuf(FIRST, COLUMNS, COLUMNS), BACK if is_stored else HALF, PSUM, ()),)))
    later: list[Node] = []
    for n in range(1, WEIGHTS):
        later += [weights[n], Matmul(_sbuf(FIRST + 2 * n * WIDE, COLUMNS), X, OTHER, ())]
    if is_looped:
        place = Tile("sbuf", "bfloat16", affine(0), 128, affine(FIRST + 2 * WIDE, [(0, 2 * WIDE)]), ((1, WIDE),))
        source = DramTile(1, "bfloat16", affine(128 * WIDE, [(0, 128 * WIDE)]), ((WIDE, 128), (1, WIDE)))
        one = Tile("sbuf", "bfloat16", affine(0), 128, place.offset, ((1, COLUMNS),))
        later = [Loop(WEIGHTS - 1, (DmaCopy(place, source, WEIGHTS_QUEUE), Matmul(one, X, OTHER, ())))]
    body += [*later, Activation(HALF, OTHER, 1.0, 0.0, "copy")]
    body.append(DmaCopy(_dram(3, COLUMNS, 256), HALF, STORE_QUEUE))
    return synchronise(Program(TENSORS, (Origin("all", "nn.dense"),), tuple(body)), DEVICE)


def _instructions(program: Program) -> Iterator[Instruction]:
    yield from (instruction for _, instruction in program.instructions())


def test_what_goes_through_dram_no_longer_queues_behind_weights() -> None:
    before = _network(long=8000)
    after, _ = hold_back(before, DEVICE)
    transfer_ps = 1000 * DmaCopy(_sbuf(0, WIDE), _dram(1, 128, WIDE), 0).cost(DEVICE).busy_cycles
    gained = time_program(before, DEVICE).total_ps - time_program(after, DEVICE).total_ps
    assert gained > 0.8 * (WEIGHTS - 1) * transfer_ps
    verify(after, DEVICE)
    check_races(after, DEVICE)


def test_only_weights_wait_for_more_and_nothing_else_changes() -> None:
    before = _network(long=8000)
    pairs = list(zip(_instructions(before), _instructions(hold_back(before, DEVICE)[0]), strict=True))
    assert all(old.replace(waits=()) == new.replace(waits=()) for old, new in pairs)
    changed = [old.queue for old, new in pairs if old.waits != new.waits]
    assert set(changed) == {f"dma{WEIGHTS_QUEUE}"}


def test_weights_in_loops_wait_too_and_nothing_locks_up() -> None:
    before = _network(long=8000, is_looped=True)
    after, _ = hold_back(before, DEVICE)
    assert time_program(after, DEVICE).total_ps < time_program(before, DEVICE).total_ps
    verify(after, DEVICE)
    check_races(after, DEVICE)


def test_nothing_waits_where_no_engine_stands_still_for_other_transfers() -> None:
    program = _network(long=8000, is_stored=False)
    assert hold_back(program, DEVICE)[0] is program


def test_weights_that_are_needed_at_once_wait_for_nothing_more() -> None:
    program = _network(long=1)
    assert hold_back(program, DEVICE)[0] == program


@pytest.mark.slow
def test_the_numbers_are_those_of_numpy_however_late_transfers_land() -> None:
    random = np.random.default_rng(7)
    x = random.standard_normal((128, 256)).astype(DTYPES["bfloat16"])
    w = random.standard_normal((WEIGHTS * 128, WIDE)).astype(DTYPES["bfloat16"])
    for is_looped in (False, True):
        after, _ = hold_back(_network(long=8000, is_looped=is_looped), DEVICE)
        found = Machine(after, DEVICE, {"w": w}).run({"x": x}, mode="strict", seed=3)
        last = w.astype(np.float64).reshape(WEIGHTS, 128, WIDE)[:, :, :COLUMNS]
        first = np.maximum(last[0].T @ x.astype(np.float64), 0)
        np.testing.assert_allclose(found["y"].astype(np.float64), first, rtol=1e-2, atol=1e-2)
        product = last[-1].T @ x.astype(np.float64)
        np.testing.assert_allclose(found["z"].astype(np.float64), product, rtol=1e-2, atol=0.2)
