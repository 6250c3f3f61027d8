"""Weights that come to places side by side come together where their rows are short, and nothing else changes."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tvm_neuron
from tests.codegen.layers import Layers
from tests.codegen.on_core import check
from tvm_neuron import relay
from tvm_neuron.codegen.emit.builder import Builder
from tvm_neuron.codegen.emit.emitter import STORE_QUEUE, WEIGHTS_QUEUE
from tvm_neuron.codegen.emit_stage import Emitted
from tvm_neuron.codegen.join_loads import join_loads
from tvm_neuron.codegen.steps import without
from tvm_neuron.codegen.sync import synchronise
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Affine, DmaCopy, DramTile, Memset, Tile
from tvm_neuron.program import DramTensor, Node, Origin, Program
from tvm_neuron.program.race import check_races
from tvm_neuron.program.verify import verify
from tvm_neuron.sim import Machine

DEVICE = load_device("inf2")
ROWS, ELEMS = 128, 1024  # float32 in each partition


@dataclass(frozen=True)
class Part:
    """What one instruction writes: `elems` of the first `rows` partitions from element `at` on."""

    at: int
    elems: int
    rows: int
    is_weight: bool = True

    @property
    def tile(self) -> Tile:
        return Tile("sbuf", "float32", Affine(), self.rows, Affine(4 * self.at), ((1, self.elems),))


def emitted(parts: list[Part], repeated: frozenset[int] = frozenset()) -> Emitted:
    """Weights that come, and constants that are set, one after the other; then all of it is stored."""
    rng = np.random.default_rng(len(parts))
    tensors, arrays, body = [DramTensor("y", "output", (ROWS, ELEMS), "float32")], {}, list[Node]()
    body.append(Memset(Part(0, ELEMS, ROWS).tile, -1.0))
    for number, part in enumerate(parts):
        if not part.is_weight:
            body.append(Memset(part.tile, float(number)))
            continue
        tensors.append(DramTensor(f"w{number}", "weight", (part.rows, part.elems), "float32"))
        arrays[f"w{number}"] = rng.standard_normal((part.rows, part.elems)).astype(np.float32)
        source = DramTile(len(tensors) - 1, "float32", Affine(), ((part.elems, part.rows), (1, part.elems)))
        body.append(DmaCopy(part.tile, source, WEIGHTS_QUEUE))
    whole = DramTile(0, "float32", Affine(), ((ELEMS, ROWS), (1, ELEMS)))
    body.append(DmaCopy(whole, Part(0, ELEMS, ROWS).tile, STORE_QUEUE))
    builder = cast(Builder, SimpleNamespace(repeats={f"w{number}": 2 for number in repeated}))
    return Emitted(builder, Program(tuple(tensors), (Origin("all", "nn.dense"),), tuple(body)), (), arrays, (), False)


def transfers(of: Emitted) -> int:
    """Of weights."""
    return sum(isinstance(node, DmaCopy) and node.ring == WEIGHTS_QUEUE for node in of.program.body)


def stored(of: Emitted) -> Any:
    """What comes out, however late transfers land."""
    program = synchronise(of.program, DEVICE)
    verify(program, DEVICE)
    check_races(program, DEVICE)
    return Machine(program, DEVICE, of.arrays).run({}, mode="strict", seed=1)["y"]


def expected(parts: list[Part], arrays: Any) -> Any:
    """The same by NumPy."""
    memory = np.full((ROWS, ELEMS), -1, np.float32)
    for number, part in enumerate(parts):
        value = arrays[f"w{number}"] if part.is_weight else number
        memory[: part.rows, part.at : part.at + part.elems] = value
    return memory


SIDE_BY_SIDE = [Part(0, 48, 128), Part(48, 16, 128), Part(64, 80, 128)]


def test_those_side_by_side_come_together_and_their_tensors_are_one() -> None:
    before = emitted(SIDE_BY_SIDE)
    after = join_loads(before, DEVICE)
    assert (transfers(before), transfers(after)) == (3, 1)
    assert [tensor.name for tensor in after.program.tensors] == ["y", "w0"]
    assert after.arrays.keys() == {"w0"}
    np.testing.assert_array_equal(stored(after), expected(SIDE_BY_SIDE, before.arrays))


@pytest.mark.parametrize(
    "parts",
    [
        [Part(0, 48, 128), Part(112, 48, 128)],  # not side by side
        [Part(0, 256, 1), Part(256, 256, 128)],  # one transfer would carry more
        [Part(0, 48, 128), Part(48, 16, 128, is_weight=False), Part(48, 16, 128)],  # its place is in use before
        [Part(0, 512, 128), Part(512, 512, 128)],  # rows are long
    ],
)  # fmt: skip
def test_others_come_as_they_did(parts: list[Part]) -> None:
    before = emitted(parts)
    assert join_loads(before, DEVICE) is before


def test_weights_that_the_model_has_once_but_the_program_twice_keep_their_count() -> None:
    before = emitted(SIDE_BY_SIDE, repeated=frozenset({1}))
    assert transfers(join_loads(before, DEVICE)) == 3


@pytest.mark.slow
@given(
    st.lists(
        st.builds(
            Part, st.integers(0, 30).map(lambda n: 16 * n), st.integers(1, 64), st.sampled_from((1, 32, 64, 128)),
            st.sampled_from((True, True, True, False)),
        ),
        min_size=2, max_size=12,
    )
)  # fmt: skip
def test_any_order_of_any_parts_leaves_the_same(parts: list[Part]) -> None:
    behind: list[Part] = []
    for part in parts:  # half of them right behind the one before, as memory for weights hands places out
        last = behind[-1] if behind and part.elems % 2 else None
        at = -(-(last.at + last.elems) // 16) * 16 if last else part.at
        behind.append(Part(min(at, ELEMS - 64), part.elems, part.rows, part.is_weight))
    before = emitted(behind)
    found, wanted = stored(join_loads(before, DEVICE)), expected(behind, before.arrays)
    holds = np.zeros((ROWS, ELEMS), bool)
    for part in behind:
        holds[:, part.at : -(-(part.at + part.elems) // 16) * 16] = False  # a place is taken as a whole
        holds[: part.rows, part.at : part.at + part.elems] = True
    np.testing.assert_array_equal(found[holds], wanted[holds])


@pytest.mark.parametrize("chip", ["inf1", "inf2"])
def test_a_network_of_narrow_layers_takes_less_time_and_is_right(chip: str) -> None:
    layers, last, channels = Layers(5), "x", 96
    for number, outputs in enumerate((128, 72, 128, 40, 128, 96, 128)):
        last, channels = layers.conv(last, f"conv{number}", channels, outputs, 1), outputs
    model = layers.model({"x": (1, 96, 4, 4)}, [last])
    mod, params = relay.frontend.from_onnx(model)
    with without("join_loads"):
        apart = tvm_neuron.report(relay.build(mod, target=f"neuron/{chip}", params=params))
    together = tvm_neuron.report(relay.build(mod, target=f"neuron/{chip}", params=params))
    assert together.latency_us < apart.latency_us
    x = np.random.default_rng(3).standard_normal((1, 96, 4, 4)).astype(np.float32)
    check(model, {"x": x}, chip, "all", roundings=16)
