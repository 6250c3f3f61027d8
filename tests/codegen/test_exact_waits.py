"""Loops whose waits would be too long are written out, and mean the same."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import tvm_neuron
from tests.codegen.on_core import check
from tests.onnx_models import make_model
from tvm_neuron import relay
from tvm_neuron.codegen import exact_waits
from tvm_neuron.codegen.emit.builder import Builder
from tvm_neuron.codegen.emit.emitter import LOAD_QUEUE, STORE_QUEUE, WEIGHTS_QUEUE
from tvm_neuron.codegen.emit_stage import Emitted
from tvm_neuron.codegen.exact_waits import with_exact_waits
from tvm_neuron.codegen.steps import without
from tvm_neuron.codegen.sync import synchronise, waits_too_long
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Activation, Affine, DmaCopy, DramTile, Matmul, TensorScalar, Tile, affine
from tvm_neuron.program import DramTensor, Loop, Node, Origin, Program
from tvm_neuron.program.race import check_races
from tvm_neuron.program.verify import verify
from tvm_neuron.sim import Machine, time_program

DEVICE = load_device("inf2")
WIDE, BLOCKS = 128, 8  # columns of a block
ELEMS = WIDE * BLOCKS
TENSORS = (
    DramTensor("x", "input", (128, ELEMS), "float32"),
    DramTensor("w", "weight", (128, ELEMS), "float32"),
    DramTensor("y", "output", (128, ELEMS), "float32"),
)


def _sbuf(at: int, *terms: tuple[int, int], elems: int = WIDE) -> Tile:
    """Columns of all partitions from byte `at` on, moved by whole blocks."""
    return Tile("sbuf", "float32", Affine(), 128, affine(at, [(d, 4 * WIDE * n) for d, n in terms]), ((1, elems),))


def _dram(tensor: int, *terms: tuple[int, int], elems: int = ELEMS) -> DramTile:
    return DramTile(tensor, "float32", affine(0, [(d, WIDE * n) for d, n in terms]), ((ELEMS, 128), (1, elems)))


X, OTHER = 0, 4 * ELEMS  # bytes where tensors begin


def _emitted(*body: Node) -> Emitted:
    arrays = {"w": np.random.default_rng(1).standard_normal((128, ELEMS)).astype(np.float32)}
    program = Program(TENSORS, (Origin("all", "nn.dense"),), body)
    return Emitted(cast(Builder, SimpleNamespace()), program, (), arrays, (), 0)


def _run(emitted: Emitted) -> tuple[Any, int]:
    """What comes out, however late transfers land, and how long it takes."""
    program = synchronise(emitted.program, DEVICE)
    verify(program, DEVICE)
    check_races(program, DEVICE)
    x = np.random.default_rng(0).standard_normal((128, ELEMS)).astype(np.float32)
    machine = Machine(program, DEVICE, emitted.arrays)
    return machine.run({"x": x}, mode="strict", seed=1)["y"], time_program(program, DEVICE).total_ps


def _one_after_the_other() -> Emitted:
    """ACT writes the even blocks, then the odd ones; POOL reads all in order, and the first needs one alone."""
    return _emitted(
        DmaCopy(_sbuf(X, elems=ELEMS), _dram(0), LOAD_QUEUE),
        Loop(4, (Activation(_sbuf(OTHER, (0, 2)), _sbuf(X, (0, 2)), 2.0, 0.0, "copy"),)),
        Loop(4, (Activation(_sbuf(OTHER + 4 * WIDE, (0, 2)), _sbuf(X + 4 * WIDE, (0, 2)), 3.0, 0.0, "copy"),)),
        Loop(8, (TensorScalar(_sbuf(X, (0, 1)), _sbuf(OTHER, (0, 1)), 1.0, 0.0, "add", "bypass", 0),)),
        DmaCopy(_dram(2), _sbuf(X, elems=ELEMS), STORE_QUEUE),
    )


def test_what_no_linear_count_tells_is_written_out() -> None:
    before = _one_after_the_other()
    after = with_exact_waits(before, DEVICE)
    assert waits_too_long(before.program, DEVICE) == {3}
    assert waits_too_long(after.program, DEVICE) == set()
    assert sum(isinstance(node, Loop) for node in after.program.body) == 2  # those of ACT wait for the input alone
    (found, time), (wanted, longer) = _run(after), _run(before)
    np.testing.assert_array_equal(found, wanted)
    assert time < longer


def test_loops_with_exact_waits_stay() -> None:
    body = _one_after_the_other().program.body
    before = _emitted(*body[:3], DmaCopy(_dram(2), _sbuf(OTHER, elems=ELEMS), STORE_QUEUE))
    assert with_exact_waits(before, DEVICE) is before


def test_what_would_be_very_many_instructions_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _one_after_the_other()
    monkeypatch.setattr(exact_waits, "_MOST", 7)  # 8 times one are 7 more
    assert with_exact_waits(before, DEVICE) is not before
    monkeypatch.setattr(exact_waits, "_MOST", 6)
    assert with_exact_waits(before, DEVICE) is before


@given(
    outer=st.integers(1, 3), inner=st.integers(2, 3), strides=st.permutations((1, 2)), ring=st.booleans(),
    begins=st.sampled_from(((), (0,), (1,), (0, 1), None)),
)  # fmt: skip
def test_sums_rings_and_weights_are_the_same(
    outer: int, inner: int, strides: list[int], ring: bool, begins: tuple[int, ...] | None
) -> None:
    """Products that begin in some iterations of loops, banks in turns, and weights that come in the loop."""
    step = 2048 if ring else 0
    offset = Affine(0, ((0, step), (1, step)) if ring else (), 0, 2 * step)
    psum = Tile("psum", "float32", Affine(), 128, offset, ((1, WIDE),))
    terms = ((0, strides[0]), (1, strides[1]))
    weights = _sbuf(2 * OTHER, *terms)
    product = Matmul(weights, _sbuf(X, *terms), psum, begins)
    banks = [Tile("psum", "float32", Affine(), 128, Affine(at), ((1, WIDE),)) for at in (0, 2048)]
    clear = [Matmul(_sbuf(X), _sbuf(X), bank, ()) for bank in banks]
    out = Activation(_sbuf(OTHER, *terms), psum, 1.0, 0.0, "copy")
    loop = Loop(outer, (Loop(inner, (DmaCopy(weights, _dram(1, *terms, elems=WIDE), WEIGHTS_QUEUE), product, out)),))
    before = _emitted(
        DmaCopy(_sbuf(X, elems=ELEMS), _dram(0), LOAD_QUEUE), DmaCopy(_sbuf(OTHER, elems=ELEMS), _dram(0), LOAD_QUEUE),
        *clear, loop, DmaCopy(_dram(2), _sbuf(OTHER, elems=ELEMS), STORE_QUEUE),
    )  # fmt: skip
    after = with_exact_waits(before, DEVICE)
    assert not any(isinstance(node, Loop) for node in after.program.body)
    np.testing.assert_array_equal(_run(after)[0], _run(before)[0])


def _windows() -> onnx.ModelProto:
    """Attention within 4 windows of 49 positions, 12 heads of 32, with a bias for each place of a window."""
    rng = np.random.default_rng(2)
    shape = (4, 49, 12, 32)
    nodes = [helper.make_node("Transpose", [name], [f"{name}t"], perm=[0, 2, 1, 3]) for name in "qv"]
    nodes += [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 3, 1]),
        helper.make_node("MatMul", ["qt", "kt"], ["products"]),
        helper.make_node("Add", ["products", "bias"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "vt"], ["y"]),
    ]
    bias = rng.standard_normal((1, 12, 49, 49)).astype(np.float32)
    return make_model(nodes, dict.fromkeys("qkv", shape), ["y"], {"bias": bias})


@pytest.mark.parametrize("chip", ["inf2"])
def test_windows_take_less_time_and_are_right(chip: str) -> None:
    model = _windows()
    mod, params = relay.frontend.from_onnx(model)
    with without("with_exact_waits"):
        longer = tvm_neuron.report(relay.build(mod, target=f"neuron/{chip}", params=params))
    exact = tvm_neuron.report(relay.build(mod, target=f"neuron/{chip}", params=params))
    assert exact.latency_us < longer.latency_us
    rng = np.random.default_rng(3)
    inputs = {name: rng.standard_normal((4, 49, 12, 32)).astype(np.float32) for name in "qkv"}
    check(model, inputs, chip, "all", roundings=16)
