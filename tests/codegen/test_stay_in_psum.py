"""What only ACT and POOL read of the PE array's results stays in PSUM: the same numbers, with fewer instructions."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.on_core import PRECISIONS, check
from tests.codegen.test_overlap import _stage
from tests.codegen.transformers import Encoder
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.emit.stay_in_psum import STAY_IN_PSUM, stay_in_psum
from tvm_neuron.codegen.residents import place_stage
from tvm_neuron.codegen.stage import Stage
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.program import Program
from tvm_neuron.schedule.kernel import Transposition
from tvm_neuron.sim import time_program

INF2 = load_device("inf2")


def attention(heads: int, rows: int, keys: int, size: int, has_norm: bool) -> onnx.ModelProto:
    """Shares of values, whose scores and, on request, norm are read more than once."""
    random = np.random.default_rng(heads + rows)
    weights = {"w": random.standard_normal((size, size)).astype(np.float32)}
    weights |= {name: random.standard_normal(size).astype(np.float32) for name in ("scale", "shift")}
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "v"], ["found"]),
        helper.make_node("MatMul", ["found", "w"], ["y"]),
    ]
    if has_norm:
        nodes.append(helper.make_node("LayerNormalization", ["y", "scale", "shift"], ["n"], axis=-1))
    shapes = {"q": (heads, rows, size), "k": (heads, size, keys), "v": (heads, keys, size)}
    return make_model(nodes, shapes, ["n" if has_norm else "y"], weights)


@given(
    st.integers(1, 5), st.integers(1, 300), st.integers(2, 200), st.sampled_from((16, 32, 72, 128)), st.booleans(),
    st.sampled_from(PRECISIONS),
)  # fmt: skip
@settings(max_examples=12)
def test_attention(heads: int, rows: int, keys: int, size: int, has_norm: bool, precision: tuple[str, str]) -> None:
    """Rows of one chunk of partitions and of several, which have a bank each or share one, and some too long to stay.

    Rounded are the operands of three products, of which the exponentials make the first one's error relative.
    """
    random = np.random.default_rng(keys)
    shapes = {"q": (heads, rows, size), "k": (heads, size, keys), "v": (heads, keys, size)}
    inputs = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    inputs["q"] /= np.float32(size) ** np.float32(0.5)
    check(attention(heads, rows, keys, size, has_norm), inputs, *precision, roundings=40)


def read_there(program: Program) -> set[str]:
    """The instructions of ACT and POOL that read PSUM."""
    found = set()
    for _, instruction in program.instructions():
        read = [tile for _, kind, tile in instruction.tiles() if kind.role == "reads"]
        if instruction.engine in ("act", "pool") and any(getattr(tile, "space", "") == "psum" for tile in read):
            found.add(instruction.mnemonic)
    return found


ENCODER = Encoder(96, 3, 50, layers=2).model()
LAYER = Encoder(96, 3, 50, layers=1).model()


@pytest.mark.parametrize(
    ("chip", "model", "reduces"),
    [
        ("inf1", attention(8, 30, 30, 64, has_norm=False), "tensor_reduce"),
        ("inf1", LAYER, "bn_stats"),
        ("inf2", attention(3, 60, 60, 64, has_norm=False), "tensor_reduce"),
        ("inf1", ENCODER, "bn_stats"),
        ("inf2", ENCODER, "bn_stats"),
    ],
)
def test_engines_reduce_what_the_array_made(chip: str, model: onnx.ModelProto, reduces: str) -> None:
    """Scores are reduced, and a norm's statistics taken, from PSUM, in less time."""
    device = load_device(chip)
    found = compile_model(model, f"neuron/{chip}").program
    with without(STAY_IN_PSUM.name):
        usual = compile_model(model, f"neuron/{chip}").program
    assert reduces in read_there(found) - read_there(usual)
    assert time_program(found, device).total_ps < time_program(usual, device).total_ps


def test_attention_that_waits_for_its_inputs_takes_no_longer_so() -> None:
    """On inf1 its transfers are what takes time, whether scores stay or not."""
    model, device = attention(3, 60, 60, 64, has_norm=False), load_device("inf1")
    found = compile_model(model, "neuron/inf1").program
    with without(STAY_IN_PSUM.name):
        usual = compile_model(model, "neuron/inf1").program
    assert "tensor_reduce" in read_there(found) - read_there(usual)
    assert time_program(found, device).total_ps <= time_program(usual, device).total_ps


def lives(stage: Stage, banks: Sequence[int]) -> list[tuple[int, int, int]]:
    """(bank, first kernel, last kernel) of each tensor that stays, as many banks as it takes."""
    plan = place_stage(stage, INF2, keep_weights=False).plan
    found = []
    for tensor, lies in stay_in_psum(stage.kernels, plan, stage.outputs, INF2).items():
        users = [number for number, kernel in enumerate(stage.kernels) if tensor in kernel.tensors]
        bank = lies.offset // INF2.psum_bank_bytes
        count = 1 if lies.joins_chunks else -(-tensor.shape[lies.partition_dim] // INF2.partitions)
        assert all(bank + number in banks for number in range(count))
        found += [(bank + number, users[0], users[-1]) for number in range(count)]
    return found


@pytest.mark.parametrize("rows", [40, 200])
def test_each_has_its_own_place(rows: int) -> None:
    """No two that are alive at once share a bank."""
    _, stage = _stage(Encoder(96, 3, rows, layers=2), "inf2")
    found = lives(stage, range(INF2.psum_banks - 2, INF2.psum_banks))
    assert found
    for number, (bank, first, last) in enumerate(found):
        for other, begin, end in found[number + 1 :]:
            assert bank != other or last < begin or end < first


def test_what_else_reads_them_keeps_them_in_sbuf() -> None:
    """The PE array, DMA and other cores reach no PSUM; nor does what goes on in device memory."""
    _, stage = _stage(Encoder(96, 3, 40, layers=1), "inf2")
    plan = place_stage(stage, INF2, keep_weights=False).plan
    found = stay_in_psum(stage.kernels, plan, (), INF2)
    multiplied = {tensor for kernel in stage.kernels for tensor in kernel.multiplied()}
    turned = {kernel.root.source.tensor for kernel in stage.kernels if isinstance(kernel.root, Transposition)}
    assert found
    assert not found.keys() & (multiplied | turned)
    assert not stay_in_psum(stage.kernels, plan, found, INF2)
    assert not stay_in_psum(stage.kernels, replace(plan, in_dram=set(found)), (), INF2)


@pytest.mark.parametrize(("rows", "stays"), [(64, True), (65, False)])
def test_an_array_of_few_columns_reaches_few_partitions(rows: int, stays: bool) -> None:
    """That of inf1 has 64 columns, each of which writes its own partition: more rows would not lie on theirs."""
    program = compile_model(attention(2, rows, 40, 32, has_norm=False), "neuron/inf1").program
    assert ("tensor_reduce" in read_there(program)) == stays
