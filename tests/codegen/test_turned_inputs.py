"""Inputs that trn2's DMA brings in transposed, beside onnxruntime; other chips transpose them on the PE array."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.codegen.on_core import check
from tests.onnx_models import make_model
from tests.stages.networks import compile_model
from tvm_neuron.codegen.steps import without
from tvm_neuron.hw import load_device
from tvm_neuron.isa import Transpose
from tvm_neuron.program import Program
from tvm_neuron.sim import time_program

STEP, FLOAT = "turn_inputs", TensorProto.FLOAT


def product(shape: tuple[int, ...], kept: int, dtype: int = FLOAT) -> onnx.ModelProto:
    """a @ b, where both come with what they sum over as their last dimension, and rows of scores by softmax."""
    turned = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    nodes = [
        helper.make_node("Transpose", ["b"], ["bt"], perm=turned),
        helper.make_node("MatMul", ["a", "bt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"], axis=-1),
    ]
    return make_model(nodes, {"a": (*shape[:-2], kept, shape[-1]), "b": shape}, ["y"], dtype=dtype)


def transposes(program: Program) -> int:
    return sum(isinstance(part, Transpose) for _, part in program.instructions())


@pytest.mark.parametrize(
    ("shape", "dtype"), [((4, 256, 64), FLOAT), ((1, 2, 300, 40), FLOAT), ((4, 256, 64), TensorProto.FLOAT16)]
)
def test_beside_onnxruntime(shape: tuple[int, ...], dtype: int) -> None:
    model, rng = product(shape, 128, dtype), np.random.default_rng(sum(shape))
    narrow = np.float32 if dtype == FLOAT else np.float16
    inputs = {
        each.name: rng.uniform(-1, 1, [dim.dim_value for dim in each.type.tensor_type.shape.dim]).astype(narrow)
        for each in model.graph.input
    }
    check(model, inputs, "trn2", "all", roundings=16)
    assert not transposes(compile_model(model, "neuron/trn2").program)


def test_where_it_takes_less_time() -> None:
    """Of blocks of 128 columns of a wide tensor the descriptors are short, and the array is quicker."""
    device, model = load_device("trn2"), product((4, 256, 64), 256)
    with without(STEP):
        by_array = compile_model(model, "neuron/trn2").program
    by_dma = compile_model(model, "neuron/trn2").program
    assert transposes(by_array)
    assert not transposes(by_dma)
    assert time_program(by_dma, device).total_ps < 0.9 * time_program(by_array, device).total_ps
    assert transposes(compile_model(model, "neuron/inf2").program)
    weights = np.random.default_rng(0).standard_normal((512, 256)).astype(np.float32)
    wide = make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (512, 512)}, ["y"], {"w": weights})
    assert transposes(compile_model(wide, "neuron/trn2").program)
