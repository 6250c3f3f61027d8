"""Single nests: which are run at once, which are not, and that both give what one instruction at a time gives."""

import pytest

from tests.sim.small import load, program, psum, sbuf, store, x
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Activation, DmaCopy, DramTile, Matmul, TensorTensor, affine
from tvm_neuron.program import Loop, Node
from tvm_neuron.sim import Machine
from tvm_neuron.sim.action import leaves
from tvm_neuron.sim.nest import Nest

DEVICE = load_device("inf1")
STEP = affine(0, [(0, 8)])  # the next four elements in each turn of loop 0
OUT = affine(256, [(0, 8)])
RING = affine(0, [(0, 16)], 0, 32)  # two tiles of PSUM in turns


def mm(bank, first, at=STEP) -> Node:
    return Matmul(sbuf(0), sbuf(at), bank, first)


def act(to, source) -> Node:
    return Activation(to, source, 1.0, 0.5, "relu")


CASES = {
    "a PSUM ring is private": (True, [Loop(6, (mm(psum(RING), ()), act(sbuf(OUT), psum(RING))))]),
    "one PSUM bank for all turns is private": (True, [Loop(6, (mm(psum(0), ()), act(sbuf(OUT), psum(0))))]),
    "a sum over an inner loop, then a tail": (
        True,
        [
            Loop(
                3,
                (
                    Loop(2, (mm(psum(RING), (1,), affine(0, [(0, 8), (1, 4)])),)),
                    Loop(2, (mm(psum(RING), None, affine(2, [(0, 8), (1, 4)])),)),
                    act(sbuf(OUT), psum(RING)),
                ),
            )
        ],
    ),
    "a sum over the outermost loop": (True, [Loop(5, (mm(psum(0), (0,)),)), act(sbuf(256), psum(0))]),
    "in place": (
        True,
        [Loop(6, (act(sbuf(STEP), sbuf(STEP)), TensorTensor(sbuf(OUT), sbuf(STEP), sbuf(STEP), "add")))],
    ),
    "the last values of a ring are read later": (
        True,
        [
            Loop(5, (mm(psum(RING), ()), act(sbuf(OUT), psum(RING)))),
            act(sbuf(320), psum(0)),
            act(sbuf(328), psum(16)),
        ],
    ),
    "DMA in a loop": (True, [Loop(4, (DmaCopy(sbuf(OUT), sbuf(STEP), 2),))]),
    "each turn reads what the last wrote": (False, [Loop(5, (act(sbuf(affine(8, [(0, 8)])), sbuf(STEP)),))]),
    "an inner loop alternates two sums": (
        False,
        [
            Loop(
                3,
                (
                    Loop(2, (mm(psum(0), (1,), affine(0, [(0, 8), (1, 4)])), mm(psum(0), None))),
                    act(sbuf(OUT), psum(0)),
                ),
            )
        ],
    ),
    "two private tiles in one place": (
        False,
        [
            Loop(
                3,
                (
                    mm(psum(0), ()),
                    mm(psum(8), (), affine(4, [(0, 8)])),
                    act(sbuf(OUT), psum(0)),
                ),
            ),
            act(sbuf(320), psum(8)),
        ],
    ),
    "two private tiles, both in use": (
        False,
        [
            Loop(
                3,
                (
                    mm(psum(0), ()),
                    mm(psum(8), (), affine(4, [(0, 8)])),
                    act(sbuf(OUT), psum(0)),
                    act(sbuf(affine(288, [(0, 8)])), psum(8)),
                ),
            )
        ],
    ),
    "two private tiles, one after the other": (
        True,
        [
            Loop(
                3,
                (
                    mm(psum(0), ()),
                    act(sbuf(OUT), psum(0)),
                    mm(psum(8), (), affine(4, [(0, 8)])),
                    act(sbuf(affine(288, [(0, 8)])), psum(8)),
                ),
            )
        ],
    ),
    "the sum of the turns before": (False, [Loop(3, (mm(psum(0), None), act(sbuf(OUT), psum(0))))]),
    "a loop of the same depth, but another": (
        False,
        [
            Loop(
                2,
                (
                    Loop(2, (act(sbuf(affine(512, [(1, 8)])), sbuf(affine(0, [(0, 16), (1, 8)]))),)),
                    Loop(2, (act(sbuf(affine(256, [(0, 16), (1, 8)])), sbuf(affine(512, [(1, 8)]))),)),
                ),
            )
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_nest(name: str) -> None:
    at_once, nodes = CASES[name]
    body = program(load(), load(256), *nodes, store(256))
    machine = Machine(body, DEVICE, {})
    loop = next(action for action, node in zip(machine.plan(), body.body, strict=True) if isinstance(node, Loop))
    assert isinstance(loop, Nest) == at_once, getattr(loop, "reason", "")
    assert machine.run(x())["y"].tobytes() == machine.run(x(), "step")["y"].tobytes()


def test_a_large_nest_runs_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    body = program(load(), load(256), *CASES["a PSUM ring is private"][1], store(256))
    whole = Machine(body, DEVICE, {}).run(x())["y"]
    monkeypatch.setattr("tvm_neuron.sim.nest._PIECE_BYTES", 300)
    machine = Machine(body, DEVICE, {})
    nest = next(action for action in machine.plan() if isinstance(action, Nest))
    assert 1 <= nest.piece < nest.axis.count
    assert machine.run(x())["y"].tobytes() == whole.tobytes()


WRITTEN = act(psum(0), sbuf(0))  # all that is read of the bank
PART = act(psum(0, 2), sbuf(0, 2))
READ = act(sbuf(320), psum(0))


def ring(depth: int) -> Loop:
    """A nest at `depth` whose PSUM ring is private."""
    bank, there = psum(affine(0, [(depth, 16)], 0, 32)), affine(256, [(depth, 8)])
    return Loop(5, (mm(bank, (), affine(0, [(depth, 8)])), act(sbuf(there), bank)))


NEST = ring(0)


@pytest.mark.parametrize(
    ("is_stored", "nodes"),
    [
        (False, [NEST, WRITTEN, READ]),
        (False, [NEST, WRITTEN, READ, READ]),
        (False, [NEST, Loop(3, (mm(psum(0), (0,)),)), READ]),
        (False, [Loop(2, (ring(1), WRITTEN, READ, act(sbuf(STEP), sbuf(320))))]),
        (True, [NEST, READ]),
        (True, [WRITTEN, NEST, READ]),
        (True, [NEST, PART, READ]),
        (True, [NEST, act(psum(16), sbuf(0)), READ]),
        (True, [NEST, mm(psum(0), None, affine(0)), READ]),
        (True, [WRITTEN, Loop(2, (READ, ring(1), act(sbuf(STEP), sbuf(320))))]),
        (True, [Loop(2, (act(psum(affine(0, [(0, 16)])), sbuf(0)), ring(1), act(sbuf(STEP), psum(0))))]),
    ],
)
def test_private_values_are_stored_where_they_may_be_read(is_stored: bool, nodes: list[Node]) -> None:
    body = program(load(), load(256), *nodes, store(256))
    machine = Machine(body, DEVICE, {})
    assert any(isinstance(leaf, Nest) and leaf.stored for leaf in leaves(machine.plan())) == is_stored
    for at in (0, 256, 320):
        machine = Machine(program(load(), load(256), *nodes, store(at)), DEVICE, {})
        assert machine.run(x())["y"].tobytes() == machine.run(x(), "step")["y"].tobytes()


def test_an_output_that_is_read_back_is_written() -> None:
    there, back = DramTile(1, "bfloat16", affine(0, [(0, 4)]), ((32, 4), (1, 4))), sbuf(affine(128, [(0, 8)]))
    body = program(load(), Loop(8, (DmaCopy(there, sbuf(STEP), 0), DmaCopy(back, there, 0))))
    assert Machine(body, DEVICE, {}).run(x())["y"].tobytes() == x()["x"].tobytes()
