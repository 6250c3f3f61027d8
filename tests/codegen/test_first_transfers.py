"""Inputs with which a program begins come first, other tensors layer by layer, gathers by themselves."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.models.agreement import Case, random_inputs, relative_error
from tests.onnx_models import Arrays, make_model
from tests.stages.networks import compile_model, run
from tvm_neuron.codegen.emit.emitter import LOAD_QUEUE, MOVE_QUEUE, WEIGHTS_QUEUE
from tvm_neuron.codegen.emit_stage import Emitted
from tvm_neuron.codegen.first_transfers import brought_in_order, gathers_apart, inputs_first
from tvm_neuron.codegen.steps import without
from tvm_neuron.isa import Affine, DmaCopy, DmaGather, DramTile, Memset, Tile, Wait
from tvm_neuron.neff import Neff
from tvm_neuron.program import DramTensor, Node, Origin, Program
from tvm_neuron.sim import time_program
from tvm_neuron.sim.timing import clocked

ROWS, ELEMS = 64, 256
LONG = 384  # rows, for which a table's parts are too long for one transfer


def network() -> onnx.ModelProto:
    """Products of rows, which are multiplied by a table before each."""
    rng = np.random.default_rng(5)
    weights = {f"w{n}": (rng.standard_normal((ELEMS, ELEMS)) / 16).astype(np.float32) for n in range(5)}
    weights |= {f"t{n}": rng.standard_normal((LONG, ELEMS)).astype(np.float32) for n in range(1, 5)}
    nodes = [helper.make_node("Tanh", ["x"], ["h0"]), helper.make_node("MatMul", ["h0", "w0"], ["b0"])]
    for n in range(1, 5):
        nodes += [
            helper.make_node("Mul", [f"b{n - 1}", f"t{n}"], [f"m{n}"]),
            helper.make_node("Tanh", [f"m{n}"], [f"h{n}"]),
            helper.make_node("MatMul", [f"h{n}", f"w{n}"], [f"b{n}" if n < 4 else "y"]),
        ]
    return make_model(nodes, {"x": (LONG, ELEMS)}, ["y"], weights)


def arrivals(compiled: Neff) -> tuple[int, int]:
    """When the input and the first weights are there, in picoseconds."""
    _, dynamic, clock = clocked(compiled.program, compiled.device)
    found: dict[str, int] = {}
    for number, done in zip(dynamic.number.tolist(), clock.done.tolist(), strict=True):
        each = dynamic.statics[number]
        if isinstance(each, DmaCopy) and isinstance(each.source, DramTile):
            tensor = compiled.program.tensors[each.source.tensor]
            found.setdefault(tensor.kind if tensor.kind == "input" else tensor.dtype, done)
    return found["input"], found["bfloat16"]


def test_inputs_and_first_weights_come_earlier_and_all_is_quicker_and_the_same() -> None:
    model = network()
    compiled = compile_model(model, "neuron/inf2")
    with without("inputs_first", "brought_in_order"):
        usual = compile_model(model, "neuron/inf2")
    assert all(now < then for now, then in zip(arrivals(compiled), arrivals(usual), strict=True))
    now, then = (time_program(each.program, each.device).total_ps for each in (compiled, usual))
    assert now < 0.97 * then
    case = Case(model, random_inputs(model))
    found = run(compiled, case.inputs, "strict")["y"]
    assert relative_error(found, case.exact["y"]) < case.bounds["y"]
    assert np.array_equal(found, run(usual, case.inputs)["y"])


def place(at: int) -> Tile:
    return Tile("sbuf", "float32", Affine(), ROWS, Affine(at), ((1, ELEMS),))


def copy(tensor: int, at: int) -> DmaCopy:
    return DmaCopy(place(at), DramTile(tensor, "float32", Affine(), ((ELEMS, ROWS), (1, ELEMS))), WEIGHTS_QUEUE)


def emitted(*body: Node) -> Emitted:
    tensors = (DramTensor("x", "input", (ROWS, ELEMS), "float32"), DramTensor("w", "weight", (ROWS, ELEMS), "float32"))
    program = Program(tensors, (Origin("a", "Add"),), body)
    return Emitted(cast(Any, SimpleNamespace()), program, (), {}, (), False)


X, W = copy(0, 0), copy(1, 8192)


@pytest.mark.parametrize(
    "body",
    [
        (X, W),  # first as it is
        (W,),  # no input
        (copy(1, 1020), X),  # into the same place, by four bytes
        (Memset(place(0), 0.0), X),
        (Memset(place(8192), 0.0), DmaCopy(place(4096), place(0), LOAD_QUEUE), X),  # behind what is there already
    ],
)
def test_what_stays_as_it_is(body: tuple[Node, ...]) -> None:
    usual = emitted(*body)
    assert inputs_first(usual) is usual


@given(places=st.lists(st.integers(0, 40), max_size=30))
def test_inputs_before_which_nothing_lies_in_their_place(places: list[int]) -> None:
    """As one compares each with all before it; thousands of rows of an input took minutes so."""
    body = [copy(number % 2, at * 256) for number, at in enumerate(places)]
    alone = [all(abs(at - each) >= 4 for each in places[:number]) for number, at in enumerate(places)]
    free = [at for at, is_alone in list(zip(places, alone, strict=True))[::2] if is_alone]
    found = inputs_first(emitted(*body)).program.body
    assert [node.target.offset for node in found[: len(free)]] == [Affine(at * 256) for at in free]
    assert sorted(node.target.offset.base for node in found) == sorted(at * 256 for at in places)


def test_what_goes_before() -> None:
    found = inputs_first(emitted(Memset(place(4096), 0.0), W, X, copy(0, 8192), copy(0, 16384)))
    first, second, *rest = found.program.body
    assert first == X.replace(ring=LOAD_QUEUE)
    assert second == copy(0, 16384).replace(ring=LOAD_QUEUE)
    assert rest == [Memset(place(4096), 0.0), W, copy(0, 8192)]


def test_constants_that_wait_for_nothing_come_among_the_weights() -> None:
    table = W.replace(ring=LOAD_QUEUE)
    usual = emitted(X.replace(ring=LOAD_QUEUE), table, W, copy(1, 16384).replace(ring=LOAD_QUEUE))
    waiting = usual.program.body[3].replace(waits=(Wait("pe", Affine(1), 1),))
    synchronised = usual.program.with_body((*usual.program.body[:3], waiting))
    found = brought_in_order(usual, synchronised, ("weight",))
    assert found.program.body == (usual.program.body[0], W, W, usual.program.body[3])
    found = brought_in_order(usual, synchronised, ("weight", "input"))
    assert found.program.body == (X, W, W, usual.program.body[3])


def test_programs_without_such_constants_stay() -> None:
    usual = emitted(X, W)
    assert brought_in_order(usual, usual.program, ("weight", "input")) is usual
    assert gathers_apart(usual) is usual


def test_a_gather_leaves_the_queue_of_the_weights() -> None:
    rows = DramTile(1, "float32", Affine(), ((ELEMS, ROWS), (ELEMS, ROWS), (1, ELEMS)))
    positions = Tile("sbuf", "int32", Affine(), ROWS, Affine(8192), ((1, 1),))
    gather = DmaGather(target=place(0), source=rows, positions=positions, ring=WEIGHTS_QUEUE)
    found = gathers_apart(emitted(gather, W))
    assert found.program.body == (gather.replace(ring=MOVE_QUEUE), W)


def step(layers: int, elems: int, channels: int) -> tuple[onnx.ModelProto, Arrays]:
    """Layers of one token, whose row is looked up: each multiplies its own by a cache, between products with weights.

    And random inputs.
    """
    rng = np.random.default_rng(5)
    weights: dict[str, np.ndarray] = {"table": rng.standard_normal((100, elems)).astype(np.float32)}
    nodes = [helper.make_node("Gather", ["table", "token"], ["h0"], axis=0)]
    for n in range(layers):
        weights[f"v{n}"] = (rng.standard_normal((elems, channels)) / elems**0.5).astype(np.float32)
        weights[f"w{n}"] = (rng.standard_normal((channels, elems)) / channels**0.5).astype(np.float32)
        nodes += [
            helper.make_node("MatMul", [f"h{n}", f"v{n}"], [f"d{n}"]),
            helper.make_node("MatMul", [f"d{n}", f"cache{n}"], [f"s{n}"]),
            helper.make_node("Tanh", [f"s{n}"], [f"t{n}"]),
            helper.make_node("MatMul", [f"t{n}", f"w{n}"], [f"h{n + 1}"]),
        ]
    caches = {f"cache{n}": rng.standard_normal((channels, channels)) / channels**0.5 for n in range(layers)}
    inputs = {name: cache.astype(np.float32) for name, cache in caches.items()} | {"token": np.array([7])}
    shapes: dict[str, Sequence[int | str]] = {name: value.shape for name, value in inputs.items()}
    model = make_model(nodes, shapes, [f"h{layers}"], weights, dtypes={"token": TensorProto.INT64})
    return model, inputs


@pytest.mark.parametrize(
    ("name", "shape", "share"), [("brought_in_order", (6, 128, 128), 0.9), ("gathers_apart", (4, 256, 64), 0.99)]
)
def test_caches_come_layer_by_layer_and_looking_up_holds_up_nothing(
    name: str, shape: tuple[int, int, int], share: float
) -> None:
    model, inputs = step(*shape)
    compiled = compile_model(model, "neuron/inf2")
    with without(name):
        usual = compile_model(model, "neuron/inf2")
    now, then = (time_program(each.program, each.device).total_ps for each in (compiled, usual))
    assert now < share * then
    case = Case(model, inputs)
    (output,) = case.bounds
    found = run(compiled, case.inputs, "strict")[output]
    assert relative_error(found, case.exact[output]) < case.bounds[output]
